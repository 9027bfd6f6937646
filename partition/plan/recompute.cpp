#include "partition/plan/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

std::string trimmed(const std::string& line) {
  const std::string text = line.substr(0, line.find('#'));
  const size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// A node is needed where a backward reads something of it, or of what follows from it.
std::vector<bool> needed(const Profile& profile) {
  std::vector<bool> needed;
  for (const ProfileNode& node : profile.nodes) needed.push_back(kept_bytes(node.cost) > 0);
  for (size_t n = profile.nodes.size(); n-- > 0;)
    if (needed[n] && profile.nodes[n].role == Role::compute)
      for (const int input : profile.nodes[n].inputs) needed[size_t(input)] = true;
  return needed;
}

// Returns whether each node is recomputed.
std::vector<bool> chosen(const Profile& profile, const Recomputation& asked) {
  std::vector<bool> chosen = asked.all ? needed(profile) : std::vector<bool>(profile.nodes.size());
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role != Role::compute) chosen[n] = false;
  for (const std::string& name : asked.nodes) {
    const auto node = std::ranges::find(profile.nodes, name, &ProfileNode::name);
    if (node == profile.nodes.end())
      throw Error(fmt::format("--recompute names a node '{}', which {} does not have", name, profile.model),
                  "`antichain profile` lists the nodes", ExitCode::usage);
    if (node->role != Role::compute)
      throw Error(fmt::format("--recompute names '{}', which is {}", name,
                              node->role == Role::loss ? "a loss" : "an input"),
                  "leave it out", ExitCode::usage);
    chosen[size_t(node - profile.nodes.begin())] = true;
  }
  return chosen;
}

}  // namespace

std::vector<Segment> segments(const std::vector<int>& stage, const std::vector<int>& recomputed) {
  std::vector<Segment> found;
  for (int i = 0; i < int(stage.size()); ++i) {
    if (!std::ranges::binary_search(recomputed, stage[size_t(i)])) continue;
    if (found.empty() || found.back().end != i) found.push_back({i, i});
    found.back().end = i + 1;
  }
  return found;
}

Recomputation parse_recomputation(const std::string& text) {
  if (text == "none" || text == "all" || text == "auto")
    return {.all = text == "all", .automatic = text == "auto"};
  Recomputation asked;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const std::string name = trimmed(line); !name.empty()) asked.nodes.push_back(name);
  return asked;
}

Profile recomputing(Profile profile, const Recomputation& asked) {
  const std::vector<bool> again = chosen(profile, asked);
  for (size_t n = 0; n < again.size(); ++n) {
    if (!again[n]) continue;
    NodeCost& cost = profile.nodes[n].cost;
    cost.backward_input_s += cost.forward_s;
    cost.stash_bytes = 0;
    cost.keeps_output = false;
  }
  return profile;
}

void recompute(Plan& plan, const Profile& profile, const Recomputation& asked) {
  const std::vector<bool> again = chosen(profile, asked);
  for (PlanStage& stage : plan.stages) {
    stage.recomputed.clear();
    for (const int n : stage.nodes)
      if (again[size_t(n)]) stage.recomputed.push_back(n);
  }
}

}  // namespace antichain
