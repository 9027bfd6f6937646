// What fits is decided by the compiled program (pipeline/program/memory_shares.h). The formula of
// partition/plan/stage_cost.h, which stages can be searched by, counts neither messages nor what else the
// program keeps. So a plan that fits by the formula may not fit, and these functions help to find one that
// does: they say what is lacking, and estimate for any cut what the formula leaves out.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Returns by rank how much more the program takes than the rank's device has.
std::vector<int64_t> lacking_bytes(const Schedule&, const Plan&, const Profile&, const Cluster&);
// Returns their sum under a policy where PlanOptions::beside_bytes is given, and else what the formula says.
int64_t lacking_bytes(const Plan&, const Profile&, const PlanOptions&, const Policy&);
// Throws Error where a rank's stages need more than its device has, by these bytes of each rank; the sentence
// names the stages, what they need, and what would do.
void check_memory(const Plan&, const Cluster&, const std::vector<int64_t>& bytes);
void check_formula(const Plan&, const Cluster&);
void check_program(const Schedule&, const Plan&, const Profile&, const Cluster&);

// Returns by stage what messages take on each of its ranks, about: of each tensor that is received or sent as
// a gradient, one copy for each micro-batch in flight and one posted ahead; of each gradient that is
// received, two copies. `ranks` and `in_flight` are by stage. Stages of one rank send each other nothing.
std::vector<int64_t> message_bytes(const std::vector<Traffic>&, const std::vector<std::vector<int>>& ranks,
                                   const std::vector<int>& in_flight, int microbatches);

// Returns by rank what the program takes beside the formula and such messages. It changes little from one cut
// to a similar one, so PlanOptions::beside_bytes has it while other cuts are searched.
std::vector<int64_t> beside_bytes(const Schedule&, const Plan&, const Profile&, const PlanOptions&);

// Has stages recompute more until the program fits, where that is possible by the formula. Returns whether
// the plan fits; else it is as it was.
bool refit(Plan&, const Profile&, const PlanOptions&, const Schedule&, const StageFitter&);

}  // namespace antichain
