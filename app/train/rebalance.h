// This file connects `antichain train` with what moves its nodes between ranks while it runs: which runs may
// move, the planning for ranks whose speeds have changed, and the sentences about it.
#pragma once

#include <memory>
#include <string>

#include "app/job/job.h"
#include "app/obtain/plan_task.h"
#include "app/train/resume.h"
#include "pipeline/train/rebalancer.h"

namespace antichain {

// Returns why a run with these options keeps its plan, as the end of a sentence ("the plan is that of --plan
// FILE"), or "" where its nodes may move.
std::string why_plan_stays(const TrainCommandOptions&);

// RebalancedRun is what planning anew needs to know of a run. What is referred to must outlive the
// rebalancer.
struct RebalancedRun {
  const Profile& profile;
  const PlanTask& task;
  bool votes = false;  // whether ranks agree before an update
  Rank& rank;
  const Facts& setting;  // for checkpoints, without the plan
};

// Returns what decides on rank 0 when nodes move; nullptr elsewhere and where --rebalance is off, one rank
// trains, or the plan can't be moved.
std::unique_ptr<Rebalancer> make_rebalancer(const TrainCommandOptions&, const RebalancedRun&, const Plan&,
                                            const Schedule&, const Timeline& predicted, Rebalancer::Listener);

}  // namespace antichain
