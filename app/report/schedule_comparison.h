// A ScheduleComparison sets all schedules side by side, on one network and one cluster. Each has a plan of
// its own, because each has its own number of stages a rank; or all have the user's plan, if it fits them.
#pragma once

#include <string>
#include <vector>

#include "app/obtain/given_files.h"
#include "app/obtain/plan_task.h"
#include "app/options/planning_options.h"
#include "app/report/timeline_page.h"
#include "partition/profile/profile.h"

namespace antichain {

struct ScheduleComparison {
  std::string table;                     // with all that it assumes and the notes
  std::vector<ShownSchedule> schedules;  // those that have a plan
  std::vector<std::string> notes;        // what the columns mean, and why a schedule has no row
  std::string link;                      // its speed, and where that comes from
};

// The table has a row for each schedule that trains: the step, the longest span of a rank, the bubble, the
// speedup over one device, the peak memory of the fullest rank, and the messages of a step. Below the table
// is the reason why a schedule has no figures. `ranks` is the number of devices where neither an option nor
// the cluster says it. Throws the schedule's Error where none has a plan.
ScheduleComparison compare_schedules(const PlanningOptions&, const GivenFiles&, const Profile&,
                                     int microbatches, int ranks);

// Returns the timeline with the figures that the table has for it.
ShownSchedule shown(const PlanTask&, const Plan&, const Schedule&, const Timeline&, const Profile&);

}  // namespace antichain
