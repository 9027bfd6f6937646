// From options and files to a plan: what planning was told, put together for one network.
#pragma once

#include <string>

#include "app/obtain/network.h"

namespace antichain {

struct PlanTask {
  PlanOptions options;  // the cluster included
  std::string method;
  Policy policy = Policy::one_f_one_b;  // what steps are predicted under, and memory is needed for
  std::string link;                     // how fast it is, and who says so

  int devices() const;  // that a plan may use
};

// `schedule`: a policy; under a schedule file, which is made for one plan, 1F1B is planned for. `ranks`: how
// many stages where neither an option nor the cluster says it.
// The link and the devices' memory: what an option says, else the cluster, else (the link) the profile. Error
// when the cluster can't be read, or cuts are not as asked for.
PlanTask plan_task(const PlanningOptions&, const GivenFiles&, const Profile&, const std::string& schedule,
                   int microbatches, int ranks);

// By the method, its step predicted. Error when a stage does not fit the memory of its device.
Plan make_plan(const Profile&, const PlanTask&);
// The given plan, validated and priced anew, else one that is made. Error when a stage does not fit its
// device.
Plan obtain_plan(const PlanningOptions&, const GivenFiles&, const Profile&, const PlanTask&);

}  // namespace antichain
