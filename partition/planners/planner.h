// A planner makes a plan from a priced network and a cluster.
#pragma once

#include "partition/plan/method.h"
#include "partition/plan/plan.h"
#include "partition/plan/plan_options.h"

namespace antichain {

// Throws Error when there are more stages than nodes or devices, or no node at all. Throws Error when no plan
// fits the devices' memory; it names the smallest memory that would do.
using Planner = Plan (*)(const Profile&, const PlanOptions&);

Plan plan_antichain(const Profile&, const PlanOptions&);      // exact
Plan plan_uniform(const Profile&, const PlanOptions&);        // equal node counts, in graph order
Plan plan_cudasize(const Profile&, const PlanOptions&);       // balances memory, in graph order
Plan plan_hashrate(const Profile&, const PlanOptions&);       // balances FLOPs, in graph order
Plan plan_handsplit(const Profile&, const PlanOptions&);      // cuts chosen by a person
Plan plan_block(const Profile&, const PlanOptions&);          // block partition of the sequence of times
Plan plan_pipedream(const Profile&, const PlanOptions&);      // PipeDream's recurrence and its own cost
Plan plan_data_parallel(const Profile&, const PlanOptions&);  // one stage, every device a replica

Planner planner(Method);

}  // namespace antichain
