// What makes a plan valid, and its fingerprint.
#include "partition/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error("the plan " + sentence, "correct the plan file or plan again");
}

void check_subject(const Plan& plan, const Profile& profile) {
  if (plan.model != profile.model)
    throw Error(fmt::format("the plan is for the model {}, not for {}", plan.model, profile.model),
                "plan again for this model");
  if (plan.graph_hash != profile.graph_hash)
    throw Error(fmt::format("the plan is for another form of {} (graph {}, here {})", plan.model,
                            plan.graph_hash, profile.graph_hash),
                "micro-batch size, instruction set or version differ; plan again");
}

// Every node that is no input, exactly once, ascending within its stage.
void check_nodes(const Plan& plan, const Profile& profile) {
  std::vector<int> stage_of(profile.nodes.size(), -1);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<int>& nodes = plan.stages[s].nodes;
    if (nodes.empty()) refuse(fmt::format("has no node in stage {}", s));
    for (int n : nodes) {
      if (n < 0 || n >= int(profile.nodes.size()))
        refuse(fmt::format("has a node {} in stage {}, but the model's nodes are 0 to {}", n, s,
                           int(profile.nodes.size()) - 1));
      const std::string& name = profile.nodes[n].name;
      if (profile.nodes[n].role == Role::input)
        refuse(fmt::format("puts node {} ({}) into stage {}, but it is an input and belongs to no stage", n,
                           name, s));
      if (stage_of[n] >= 0)
        refuse(fmt::format("has node {} ({}) twice: in stage {} and in stage {}", n, name, stage_of[n], s));
      stage_of[n] = int(s);
    }
    if (!std::is_sorted(nodes.begin(), nodes.end()))
      refuse(fmt::format("lists stage {}'s nodes out of order", s));
  }
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (stage_of[n] < 0 && profile.nodes[n].role != Role::input)
      refuse(fmt::format("leaves out node {} ({})", n, profile.nodes[n].name));
}

void check_edges(const Plan& plan, const Profile& profile) {
  std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    for (int u : profile.nodes[n].inputs)
      if (stage_of[u] > stage_of[n])
        refuse(fmt::format(
            "has a cycle between stages: node {} ({}) of stage {} uses node {} ({}) of the later stage {}", n,
            profile.nodes[n].name, stage_of[n], u, profile.nodes[u].name, stage_of[u]));
}

void check_ranks(const Plan& plan) {
  std::vector<int> stage_of(plan.ranks(), -1);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].ranks.empty()) refuse(fmt::format("has no rank in stage {}", s));
    for (int r : plan.stages[s].ranks) {
      if (r < 0 || r >= plan.ranks())
        refuse(fmt::format("names rank {} in stage {}, but its {} ranks must be 0 to {}, each once", r, s,
                           plan.ranks(), plan.ranks() - 1));
      if (stage_of[r] >= 0)
        refuse(fmt::format("has rank {} twice: in stage {} and in stage {}", r, stage_of[r], s));
      stage_of[r] = int(s);
    }
  }
}

}  // namespace

int Plan::ranks() const {
  size_t ranks = 0;
  for (const PlanStage& stage : stages) ranks += stage.ranks.size();
  return int(ranks);
}

int Plan::device_of(int rank) const {
  for (const PlanStage& stage : stages)
    for (size_t i = 0; i < stage.ranks.size(); ++i)
      if (stage.ranks[i] == rank && i < stage.devices.size()) return stage.devices[i];
  return rank;
}

std::vector<int> Plan::stage_of(int nodes) const {
  std::vector<int> stage_of(nodes, -1);
  for (size_t s = 0; s < stages.size(); ++s)
    for (int n : stages[s].nodes) {
      ANTICHAIN_CHECK(n >= 0 && n < nodes, "the plan was not validated: it names a node that is not there");
      stage_of[n] = int(s);
    }
  return stage_of;
}

// As many ranks named as 0 … R − 1, none twice: so none is missing either.
void validate(const Plan& plan, const Profile& profile) {
  if (plan.stages.empty()) refuse("is empty: it has no stage");
  check_subject(plan, profile);
  check_nodes(plan, profile);
  check_edges(plan, profile);
  check_ranks(plan);
}

std::string plan_hash(const Plan& plan) {
  std::string text = plan.model + "\n" + plan.graph_hash;
  for (const PlanStage& stage : plan.stages)
    text += fmt::format("\n{} on {}", fmt::join(stage.nodes, ","), fmt::join(stage.ranks, ","));
  return fmt::format("{:016x}", hash_bytes(text));
}

const PlanStage& stage_of_rank(const Plan& plan, int rank) {
  for (const PlanStage& stage : plan.stages)
    if (std::find(stage.ranks.begin(), stage.ranks.end(), rank) != stage.ranks.end()) return stage;
  throw Error(fmt::format("the plan for model '{}' has no stage for rank {}", plan.model, rank),
              fmt::format("start {} ranks, or plan for more stages", plan.ranks()));
}

}  // namespace antichain
