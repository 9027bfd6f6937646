// This file says what makes a plan valid, and computes its fingerprint.
#include "partition/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

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

// Every node that is no input stands exactly once, ascending within its stage.
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

void check_together(const Plan& plan, const Profile& profile) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  for (const std::vector<int>& set : profile.together)
    for (const int n : set)
      if (const int one = set[0], a = stage_of[size_t(one)], b = stage_of[size_t(n)]; a != b)
        throw Error(
            fmt::format("the plan by {} has node {} ({}) in stage {} and node {} ({}) in stage {}, but "
                        "they sit together",
                        plan.method, one, profile.nodes[size_t(one)].name, a, n,
                        profile.nodes[size_t(n)].name, b),
            "plan by the method antichain, which keeps them in one stage, or correct the plan file");
}

// A loss is not recomputed, because the step counts it once.
void check_recomputed(const Plan& plan, const Profile& profile) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    for (const int n : stage.recomputed) {
      if (std::ranges::count(stage.nodes, n) == 0)
        refuse(fmt::format("recomputes node {} in stage {}, which does not have it", n, s));
      if (profile.nodes[size_t(n)].role == Role::loss)
        refuse(fmt::format("recomputes node {} ({}) in stage {}, but it is a loss", n,
                           profile.nodes[size_t(n)].name, s));
    }
    if (!std::ranges::is_sorted(stage.recomputed))
      refuse(fmt::format("lists stage {}'s recomputed nodes out of order", s));
  }
}

// The ranks are 0 to R - 1, and each has a stage.
void check_ranks(const Plan& plan) {
  std::set<int> ranks;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<int>& own = plan.stages[s].ranks;
    if (own.empty()) refuse(fmt::format("has no rank in stage {}", s));
    for (int r : own) {
      if (r < 0) refuse(fmt::format("names rank {} in stage {}, but ranks count from 0", r, s));
      if (std::ranges::count(own, r) > 1) refuse(fmt::format("has rank {} twice in stage {}", r, s));
      ranks.insert(r);
    }
  }
  int next = 0;
  for (const int r : ranks)
    if (r != next++)
      refuse(fmt::format("names rank {}, but no stage has rank {}", *ranks.rbegin(), next - 1));
}

// A rank has one device in all its stages, and no device has two ranks.
void check_devices(const Plan& plan) {
  std::map<int, int> device_of, rank_of;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (size_t i = 0; i < plan.stages[s].ranks.size(); ++i) {
      const int rank = plan.stages[s].ranks[i];
      const int device = i < plan.stages[s].devices.size() ? plan.stages[s].devices[i] : rank;
      if (const int other = device_of.try_emplace(rank, device).first->second; other != device)
        refuse(fmt::format("has rank {} on device {}, and in stage {} on device {}", rank, other, s, device));
      if (const int other = rank_of.try_emplace(device, rank).first->second; other != rank)
        refuse(fmt::format("has ranks {} and {} on device {}", other, rank, device));
    }
}

}  // namespace

double Plan::objective_s() const {
  if (objective == Objective::makespan) return step_s;
  return objective == Objective::period ? period_s : bottleneck_s;
}

int Plan::ranks() const {
  int largest = -1;
  for (const PlanStage& stage : stages)
    for (const int rank : stage.ranks) largest = std::max(largest, rank);
  return largest + 1;
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

void validate(const Plan& plan, const Profile& profile) {
  if (plan.stages.empty()) refuse("is empty: it has no stage");
  check_subject(plan, profile);
  check_nodes(plan, profile);
  check_edges(plan, profile);
  check_together(plan, profile);
  check_recomputed(plan, profile);
  check_ranks(plan);
  check_devices(plan);
}

std::string plan_hash(const Plan& plan) {
  std::string text = plan.model + "\n" + plan.graph_hash;
  for (const PlanStage& stage : plan.stages)
    text += fmt::format("\n{} on {}", fmt::join(stage.nodes, ","), fmt::join(stage.ranks, ","));
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (!plan.stages[s].recomputed.empty())
      text += fmt::format("\n{} recomputes {}", s, fmt::join(plan.stages[s].recomputed, ","));
  if (plan.shard_optimiser) text += "\nsharded optimiser";
  return fmt::format("{:016x}", hash_bytes(text));
}

Plan one_stage(const Profile& profile, int replicas) {
  Plan plan{.model = profile.model,
            .graph_hash = profile.graph_hash,
            .method = "one stage",
            .objective = Objective::compute};
  PlanStage& stage = plan.stages.emplace_back();
  for (int rank = 0; rank < replicas; ++rank) stage.ranks.push_back(rank);
  for (int n = 0; n < int(profile.nodes.size()); ++n)
    if (profile.nodes[size_t(n)].role != Role::input) stage.nodes.push_back(n);
  return plan;
}

std::vector<int> stages_of_rank(const Plan& plan, int rank) {
  std::vector<int> own;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (std::ranges::count(plan.stages[s].ranks, rank) > 0) own.push_back(int(s));
  if (own.empty())
    throw Error(fmt::format("the plan for model '{}' has no stage for rank {}", plan.model, rank),
                fmt::format("start {} ranks, or plan for more stages", plan.ranks()));
  return own;
}

std::vector<int> nodes_of_rank(const Plan& plan, int rank) {
  std::vector<int> nodes;
  for (const int s : stages_of_rank(plan, rank)) {
    const std::vector<int>& of_stage = plan.stages[size_t(s)].nodes;
    nodes.insert(nodes.end(), of_stage.begin(), of_stage.end());
  }
  std::ranges::sort(nodes);
  return nodes;
}

const PlanStage& stage_of_rank(const Plan& plan, int rank) {
  const std::vector<int> own = stages_of_rank(plan, rank);
  if (own.size() > 1)
    throw Error(fmt::format("the plan gives rank {} the stages {}, but a rank executes one stage", rank,
                            fmt::join(own, " and ")),
                "give every stage ranks of its own; simulate and plan also take plans like this one",
                ExitCode::usage);
  return plan.stages[size_t(own.front())];
}

void check_replicas_have_one_stage(const Plan& plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<int>& ranks = plan.stages[s].ranks;
    const auto has_others = [&](int rank) { return stages_of_rank(plan, rank).size() > 1; };
    if (const auto rank = std::ranges::find_if(ranks, has_others); ranks.size() > 1 && rank != ranks.end())
      throw Error(fmt::format("stage {} of the plan has {} replicas, but its rank {} has {} stages", s,
                              ranks.size(), *rank, stages_of_rank(plan, *rank).size()),
                  "give replicas no other stage, or every stage one rank; simulate takes plans like this one",
                  ExitCode::usage);
  }
}

bool has_replicas(const Plan& plan) {
  return std::ranges::any_of(plan.stages, [](const PlanStage& stage) { return stage.ranks.size() > 1; });
}

bool has_several_stages_a_rank(const Plan& plan) {
  size_t seats = 0;
  for (const PlanStage& stage : plan.stages) seats += stage.ranks.size();
  return int(seats) > plan.ranks();
}

}  // namespace antichain
