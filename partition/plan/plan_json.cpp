// A plan.json has one field a line, with figures beside the choices. Reading takes the choices (model, graph,
// nodes, ranks) and needs no figures, so that a plan can be edited or written by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "framework/json.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_price.h"
#include "partition/profile/json_text.h"

namespace antichain {
namespace {

constexpr const char* format_name = "antichain plan 1";
constexpr const char* by_hand = "by hand";
constexpr int most = std::numeric_limits<int>::max();
constexpr int most_ranks = 1 << 13, most_devices = 1 << 20;  // what is read is counted by pairs of ranks

// Returns a stage's nodes as the file lists them.
std::vector<int> listed_nodes(const Plan& plan, const Profile& profile, int s) {
  std::vector<int> nodes = plan.stages[s].nodes;
  if (!profile.ids_are_names || s > 0) return nodes;
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role == Role::input) nodes.push_back(int(n));
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// Devices are written only where they differ from the ranks.
std::string devices_line(const PlanStage& stage) {
  if (stage.devices.empty() || stage.devices == stage.ranks) return "";
  return fmt::format("\n      \"devices\": [{}],", fmt::join(stage.devices, ", "));
}

std::string names_of(const std::vector<int>& nodes, const Profile& profile) {
  std::vector<std::string> names;
  for (int n : nodes) names.push_back(quoted(profile.nodes[n].name));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Most plans keep everything, and say nothing of it.
std::string recomputed_line(const PlanStage& stage, const Profile& profile) {
  if (stage.recomputed.empty()) return "";
  const std::string names = names_of(stage.recomputed, profile);
  return fmt::format("\n      \"recomputed\": [{}],\n      \"recomputed_names\": [{}],",
                     profile.ids_are_names ? names : fmt::format("{}", fmt::join(stage.recomputed, ", ")),
                     names);
}

std::string stage_json(const Plan& plan, const Profile& profile, int s, int64_t boundary_bytes) {
  const PlanStage& stage = plan.stages[s];
  const StageSum sum = sum_of(profile, stage.nodes, stage.recomputed);
  const std::vector<int> nodes = listed_nodes(plan, profile, s);
  const std::string all_names = names_of(nodes, profile);
  return fmt::format(
      R"(    {{
      "stage": {},
      "ranks": [{}],{}
      "nodes": [{}],
      "names": [{}],{}
      "forward_ms": {},
      "backward_ms": {},
      "compute_ms": {},
      "boundary_bytes": {},
      "param_bytes": {},
      "memory_bytes": {}
    }})",
      s, fmt::join(stage.ranks, ", "), devices_line(stage),
      profile.ids_are_names ? all_names : fmt::format("{}", fmt::join(nodes, ", ")), all_names,
      recomputed_line(stage, profile), json_milliseconds(sum.forward_s), json_milliseconds(sum.backward_s),
      json_milliseconds(sum.forward_s + sum.backward_s), boundary_bytes, sum.param_bytes, stage.memory_bytes);
}

// A StageReader reads stages. It refuses what stands in the file twice, at the place of the second.
class StageReader {
 public:
  explicit StageReader(const Profile* profile) : profile_(profile) {
    if (profile)
      for (size_t n = 0; n < profile->nodes.size(); ++n) index_[profile->nodes[n].name] = int(n);
  }

  PlanStage read(JsonReader field, int s) {
    if (field.has("stage"))
      if (int64_t written = field.at("stage").integer(); written != s)
        field.fail(fmt::format("stage {} stands where stage {} is expected", written, s));
    PlanStage stage;
    read_ranks(field, stage);
    for (const JsonReader& element : field.at("nodes").elements()) {
      const int n = node(element);
      once(nodes_.insert(n).second, "node", n, "plan", element);
      if (!is_attached_input(n, s)) stage.nodes.push_back(n);
    }
    std::sort(stage.nodes.begin(), stage.nodes.end());
    read_recomputed(field, stage);
    if (field.has("memory_bytes")) stage.memory_bytes = field.at("memory_bytes").integer();
    for (const char* figure : {"names", "recomputed_names", "forward_ms", "backward_ms", "compute_ms",
                               "boundary_bytes", "param_bytes"})
      if (field.has(figure)) field.at(figure);
    field.done();
    return stage;
  }

 private:
  static void once(bool first, const char* what, int number, const char* where, const JsonReader& element) {
    if (!first) element.fail(fmt::format("{} {} stands in the {} twice", what, number, where));
  }

  // Ranks ascend, and devices stand beside them. A rank may be in several stages, always on the same device.
  void read_ranks(JsonReader& field, PlanStage& stage) {
    std::vector<std::pair<int, int>> pairs;
    std::set<int> ranks;
    for (const JsonReader& element : field.at("ranks").elements()) {
      pairs.emplace_back(int(element.integer(0, most_ranks - 1)), 0);
      const int rank = pairs.back().first;
      once(ranks.insert(rank).second, "rank", rank, "stage", element);
    }
    const bool has_devices = field.has("devices");
    if (has_devices) {
      const JsonReader devices = field.at("devices");
      const std::vector<JsonReader> elements = devices.elements();
      if (elements.size() != pairs.size())
        devices.fail(
            fmt::format("{} devices for {} ranks; each rank has one", elements.size(), pairs.size()));
      for (size_t i = 0; i < pairs.size(); ++i) {
        pairs[i].second = int(elements[i].integer(0, most_devices - 1));
        const auto& [rank, device] = pairs[i];
        once(rank_of_.try_emplace(device, rank).first->second == rank, "device", device, "plan", elements[i]);
      }
    }
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [rank, device] : pairs) {
      stage.ranks.push_back(rank);
      if (has_devices) stage.devices.push_back(device);
    }
  }

  void read_recomputed(JsonReader& field, PlanStage& stage) {
    if (!field.has("recomputed")) return;
    std::set<int> nodes;
    for (const JsonReader& element : field.at("recomputed").elements()) {
      const int n = node(element);
      once(nodes.insert(n).second, "recomputed node", n, "stage", element);
    }
    stage.recomputed.assign(nodes.begin(), nodes.end());
  }

  int node(const JsonReader& element) const {
    if (!element.is_string()) return int(element.integer(0, most));
    const std::string name = element.string();
    if (!profile_) element.fail(fmt::format("\"{}\" is a name; numbers are expected here", name));
    const auto known = index_.find(name);
    if (known == index_.end())
      element.fail(fmt::format("the model {} has no node \"{}\"", profile_->model, name));
    return known->second;
  }

  bool is_attached_input(int n, int s) const {
    return s == 0 && profile_ && profile_->ids_are_names && n < int(profile_->nodes.size()) &&
           profile_->nodes[n].role == Role::input;
  }

  const Profile* profile_;
  std::map<std::string, int> index_;
  std::set<int> nodes_;
  std::map<int, int> rank_of_;  // by device
};

double seconds_of(JsonReader& file, const char* field) {
  return file.has(field) ? seconds_from_ms(file.at(field)) : 0;
}

std::optional<Objective> read_objective(const JsonReader& field) {
  const std::string name = field.string();
  if (name.empty()) return std::nullopt;
  const std::vector<std::string> known = objective_names();
  if (std::ranges::find(known, name) == known.end())
    field.fail(fmt::format("\"{}\" is no objective; choose {}", name, fmt::join(known, ", ")));
  return objective(name);
}

void read_figures(JsonReader& file, Plan& plan) {
  if (file.has("objective")) plan.objective = read_objective(file.at("objective"));
  plan.bottleneck_s = seconds_of(file, "bottleneck_ms");
  plan.step_s = seconds_of(file, "step_ms");
  plan.period_s = seconds_of(file, "period_ms");
  plan.lower_bound_s = seconds_of(file, "lower_bound_ms");
  if (file.has("bound_for")) plan.bound_for = file.at("bound_for").string();
  plan.planning_s = seconds_of(file, "planning_ms");
  if (file.has("states")) plan.states = file.at("states").integer();
  for (const char* follows : {"gap", "proved_optimal"})  // from the above
    if (file.has(follows)) file.at(follows);
}

// A method made the stages that the file was written with, and no others.
std::string read_method(JsonReader& file, const Plan& plan) {
  const std::string method = file.has("method") ? file.at("method").string() : by_hand;
  const bool same = file.has("stages_hash") && file.at("stages_hash").string() == plan_hash(plan);
  return same ? method : by_hand;
}

Plan read_plan(const std::string& text, const std::string& origin, const Profile* profile) {
  const nlohmann::json json = parse_json(text, origin);
  JsonReader file(json, origin);
  if (std::string format = file.at("format").string(); format != format_name)
    file.fail(fmt::format("the format is \"{}\", but \"{}\" is expected", format, format_name));
  Plan plan;
  plan.model = file.at("model").string();
  plan.graph_hash = file.at("graph_hash").string();
  read_figures(file, plan);
  if (file.has("shard_optimiser")) plan.shard_optimiser = file.at("shard_optimiser").boolean();
  StageReader stages(profile);
  for (const JsonReader& element : file.at("stages").elements())
    plan.stages.push_back(stages.read(element, int(plan.stages.size())));
  plan.method = read_method(file, plan);
  file.done();
  return plan;
}

}  // namespace

std::string to_json(const Plan& plan, const Profile& profile) {
  validate(plan, profile);
  const std::vector<Boundary> crossing = boundaries(plan, profile);
  std::vector<std::string> stages;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    stages.push_back(stage_json(plan, profile, int(s), crossing[s].bytes));
  return fmt::format(
      R"({{
  "format": "{}",
  "model": {},
  "graph_hash": {},
  "method": {},
  "stages_hash": {},
  "objective": {},
  "bottleneck_ms": {},
  "step_ms": {},
  "period_ms": {},
  "lower_bound_ms": {},
  "bound_for": {},
  "gap": {:.6f},
  "proved_optimal": {},
  "states": {},
  "planning_ms": {:.3f},{}
  "stages": [
{}
  ]
}}
)",
      format_name, quoted(plan.model), quoted(plan.graph_hash), quoted(plan.method), quoted(plan_hash(plan)),
      quoted(std::string(plan.objective ? name_of(*plan.objective) : "")),
      json_milliseconds(plan.bottleneck_s), json_milliseconds(plan.step_s), json_milliseconds(plan.period_s),
      json_milliseconds(plan.lower_bound_s), quoted(plan.bound_for), plan.gap(), plan.proved_optimal(),
      plan.states, plan.planning_s * 1e3, plan.shard_optimiser ? "\n  \"shard_optimiser\": true," : "",
      fmt::join(stages, ",\n"));
}

Plan plan_from_json(const std::string& text, const std::string& origin) {
  return read_plan(text, origin, nullptr);
}

Plan plan_from_json(const std::string& text, const std::string& origin, const Profile& profile) {
  return read_plan(text, origin, &profile);
}

}  // namespace antichain
