// A PlanTask is everything that a planner is told for one network, from options and files.
#pragma once

#include <optional>
#include <string>

#include "app/obtain/given_files.h"
#include "app/options/options.h"
#include "partition/plan/method.h"
#include "partition/plan/recompute.h"
#include "pipeline/planning/schedule_choice.h"

namespace antichain {

struct PlanTask {
  PlanOptions options;  // the cluster included
  Method method = Method::antichain;
  Policy policy = Policy::one_f_one_b;  // the policy for predicted steps and memory
  std::string schedule{policy.name};    // as asked for: a policy, `auto` or a file
  ScheduleChoice choice;                // what it names; 1f1b for a file
  std::optional<Plan> given = {};       // of --plan, validated
  bool may_shard = false;               // whether plans that shard the optimiser are tried, too
  std::string link;                     // its speed, and where that comes from
  std::string backward_split;  // a line about it, where the schedule has halves that were not measured
};

// `schedule` is a policy, `auto` or a file. A file is made for one plan: what is planned here assumes 1F1B
// then. With `auto` the plan is cut for zb-h1, which parts backwards and keeps the same memory on every rank.
// `ranks` is the number of stages where neither an option nor the cluster says it. The link and the devices'
// memory come from an option, else from the cluster, else (the link) from the profile. Throws Error when the
// cluster can't be read, or when cuts or a given plan do not fit the request.
PlanTask plan_task(const PlanningOptions&, const GivenFiles&, const Profile&, const ScheduleOptions&,
                   int microbatches, int ranks);

// Throws a usage Error where the named policy can't have so many stages a rank, replicas, or micro-batches.
// To be called before anything is measured; `ranks` as above.
void check_schedule(const PlanningOptions&, const std::string& schedule, int microbatches, int ranks);

// Throws a usage Error where the options or the files name a number of ranks that the job does not have. It,
// too, is called before anything is measured.
void check_ranks(const PlanningOptions&, const GivenFiles&, int ranks);
// Throws one where the plan has another number of ranks than the job.
void check_ranks(const Plan&, int ranks);

// Plans by the task's method. Throws Error as ScheduleChoice::plan does.
Plan plan_here(const Profile&, const PlanTask&);
// Returns the given plan with new costs, else a plan made here. A given plan's step is that of the given
// schedule. Throws Error when a stage does not fit its device, and when the schedule does not fit the plan.
Plan obtain_plan(const GivenFiles&, const Profile&, const PlanTask&);

}  // namespace antichain
