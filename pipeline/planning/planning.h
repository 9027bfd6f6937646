// This file plans for a policy, by any method and for any objective. The step is simulated, and memory is a
// hard limit, by the formula of partition/plan/stage_cost.h. Commands plan by ScheduleChoice::plan
// (schedule_choice.h), which calls this, and which for `auto` searches cut and order together as well.
//
//   compute, compute-or-transfer   the method's own plan
//   makespan                       method antichain: plan_makespan; any other: its own plan as it is, beside
//                                  the bound of pipeline/planning/makespan_bound.h
//   period                         as makespan, for the period of steps that overlap
#pragma once

#include "partition/plan/method.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

// Throws Error for what the policy can't be planned with, before anything is measured or searched: no
// backwards, a number of micro-batches that it can't run on so many ranks, replicas where a rank has several
// stages.
void check_policy(const Policy&, const PlanOptions&);

// Plan::step_s and Plan::period_s are of options.microbatches under the policy, which also says how many
// micro-batches are in flight (so options.in_flight is not read). Throws Error as the planners do, for a
// policy without backwards, for a number of micro-batches that the policy can't run, and for more replicas
// than micro-batches, and calls check_formula for the methods that do not look at memory.
Plan plan_network(const Profile&, const PlanOptions&, Method, const Policy&);

// Sets Plan::step_s and Plan::period_s, as the simulator says, of options.microbatches under the policy.
void set_pace(Plan&, const Profile&, const PlanOptions&, const Policy&);

// Finds the plan with the shortest step, simulated with fill and drain, links and the messages that the
// runner sends (makespan.cpp says how). options.objective is makespan, or period: then the plan has the bound
// of the period. Throws Error as plan_antichain does.
Plan plan_makespan(const Profile&, const PlanOptions&, const Policy&, const StageFitter&);

}  // namespace antichain
