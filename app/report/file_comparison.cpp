#include "app/report/file_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "framework/error.h"
#include "framework/json.h"
#include "partition/plan/plan.h"
#include "partition/profile/read_profile.h"

namespace antichain {
namespace {

std::string objective_of(const Plan& plan) {
  return plan.objective ? std::string(name_of(*plan.objective)) : "";
}

struct TwoTexts {
  std::string a, b;  // names of files
  std::string text_a, text_b;
};

bool is_plan(const std::string& text) { return text.find("\"antichain plan ") != std::string::npos; }

Table two_columns() { return Table({{"", Table::Align::left}, {"A"}, {"B"}}); }

std::string beside(const TwoTexts& files, const std::string& tables) {
  return fmt::format("A  {}\nB  {}\n\n{}", files.a, files.b, tables);
}

double node_s(const ProfileNode& node) { return node.cost.forward_s + node.cost.backward_s(); }

double all_nodes_s(const Profile& profile) {
  double sum = 0;
  for (const ProfileNode& node : profile.nodes) sum += node_s(node);
  return sum;
}

struct NodeChange {
  std::string name;
  double a_s, b_s;
};

// Returns the nodes of both profiles, the largest differences of time first.
std::vector<NodeChange> node_changes(const Profile& a, const Profile& b) {
  std::map<std::string, const ProfileNode*> others;
  for (const ProfileNode& node : b.nodes) others[node.name] = &node;
  std::vector<NodeChange> changes;
  for (const ProfileNode& node : a.nodes)
    if (const auto other = others.find(node.name); other != others.end())
      changes.push_back({node.name, node_s(node), node_s(*other->second)});
  std::ranges::stable_sort(changes, std::ranges::greater(),
                           [](const NodeChange& c) { return std::abs(c.a_s - c.b_s); });
  return changes;
}

FileComparison compare_profiles(const TwoTexts& files) {
  const Profile a = read_profile(files.text_a, files.a), b = read_profile(files.text_b, files.b);
  Table table = two_columns();
  table.add({"model", a.model, b.model});
  table.add({"device", a.device, b.device});
  table.add({"graph", a.graph_hash, b.graph_hash});
  table.add({"samples of a micro-batch", std::to_string(a.microbatch), std::to_string(b.microbatch)});
  table.add({"nodes", std::to_string(a.nodes.size()), std::to_string(b.nodes.size())});
  table.add({"all nodes, ms", milliseconds(all_nodes_s(a)), milliseconds(all_nodes_s(b))});
  table.add({"link, GB/s", fmt::format("{:.4g}", a.link.bytes_per_s / 1e9),
             fmt::format("{:.4g}", b.link.bytes_per_s / 1e9)});
  Table nodes({{"node", Table::Align::left}, {"A\nms"}, {"B\nms"}, {"B over A"}});
  constexpr size_t most = 8;
  const std::vector<NodeChange> changes = node_changes(a, b);
  for (size_t i = 0; i < std::min(most, changes.size()); ++i) {
    const NodeChange& change = changes[i];
    if (change.a_s == change.b_s) break;
    nodes.add({change.name, milliseconds(change.a_s), milliseconds(change.b_s),
               change.a_s > 0 ? fmt::format("{:.2f}", change.b_s / change.a_s) : "-"});
  }
  const bool equal = to_json(a) == to_json(b);
  const double ratio = all_nodes_s(a) > 0 ? all_nodes_s(b) / all_nodes_s(a) : 0;
  const nlohmann::ordered_json json = {{"a", files.a},
                                       {"b", files.b},
                                       {"kind", "profile"},
                                       {"equal", equal},
                                       {"same_graph", a.graph_hash == b.graph_hash},
                                       {"b_over_a", ratio}};
  const std::string verdict =
      equal ? "the same network with the same figures"
            : fmt::format("all nodes of B take {:.3f} times as long as those of A, {}", ratio,
                          a.graph_hash == b.graph_hash ? "in the same network" : "in another network");
  return {equal,
          beside(files, table.str(80) + (equal ? "" : "\nWhere times differ most\n\n" + nodes.str(80))),
          verdict, json.dump(2) + "\n"};
}

std::string stage_sizes(const Plan& plan) {
  std::string text;
  for (const PlanStage& stage : plan.stages)
    text += fmt::format("{}{}{}", text.empty() ? "" : "+", stage.nodes.size(),
                        stage.ranks.size() > 1 ? fmt::format("x{}", stage.ranks.size()) : "");
  return text;
}

// Returns the number of nodes on another stage, or −1 where the plans are not of one network.
int64_t moved_nodes(const Plan& a, const Plan& b) {
  if (a.graph_hash != b.graph_hash) return -1;
  std::map<int, size_t> stage_in_a;
  for (size_t s = 0; s < a.stages.size(); ++s)
    for (const int node : a.stages[s].nodes) stage_in_a[node] = s;
  int64_t moved = 0;
  for (size_t s = 0; s < b.stages.size(); ++s)
    for (const int node : b.stages[s].nodes) moved += !stage_in_a.contains(node) || stage_in_a[node] != s;
  return moved;
}

FileComparison compare_plans(const TwoTexts& files) {
  const Plan a = plan_from_json(files.text_a, files.a), b = plan_from_json(files.text_b, files.b);
  Table table = two_columns();
  table.add({"model", a.model, b.model});
  table.add({"graph", a.graph_hash, b.graph_hash});
  table.add({"method", a.method, b.method});
  table.add({"objective", objective_of(a), objective_of(b)});
  table.add({"nodes of the stages", stage_sizes(a), stage_sizes(b)});
  table.add({"slowest stage or boundary, ms", milliseconds(a.bottleneck_s), milliseconds(b.bottleneck_s)});
  table.add({"predicted step, ms", milliseconds(a.step_s), milliseconds(b.step_s)});
  table.add({"lower bound, ms", milliseconds(a.lower_bound_s), milliseconds(b.lower_bound_s)});
  const bool equal = plan_hash(a) == plan_hash(b);
  const int64_t moved = moved_nodes(a, b);
  const std::string verdict =
      equal       ? fmt::format("the same stages on the same ranks, {}", plan_hash(a))
      : moved < 0 ? "they are of different networks"
                  : fmt::format("{} on another stage, or stages on other ranks", counted(moved, "node"));
  const nlohmann::ordered_json json = {
      {"a", files.a}, {"b", files.b}, {"kind", "plan"}, {"equal", equal}, {"moved_nodes", moved}};
  return {equal, beside(files, table.str(80) + "\nTimes are those that the files hold.\n"), verdict,
          json.dump(2) + "\n"};
}

}  // namespace

FileComparison compare_files(const std::string& a, const std::string& b) {
  const TwoTexts files{a, b, read_file(a), read_file(b)};
  if (is_plan(files.text_a) != is_plan(files.text_b))
    throw Error(fmt::format("{} and {} are not of one kind: one is a plan", a, b),
                "give two profiles, or two plans", ExitCode::usage);
  return is_plan(files.text_a) ? compare_plans(files) : compare_profiles(files);
}

}  // namespace antichain
