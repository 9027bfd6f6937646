// A timeline page shows timelines of one or several schedules in a browser: zoom, what each action is and
// waits for, and the memory of each rank over time. It is one file and loads nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/plan.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

struct ShownSchedule {
  std::string name, about;
  Plan plan;
  Timeline timeline;
};

// Everything in the page is computed here: its script only draws. `profile` names the nodes and has what each
// keeps of a micro-batch. Bytes are the planners': what is held of the weights, and what forwards keep for
// backwards (partition/plan/stage_cost.h).
std::string timeline_page(const Profile&, const std::string& title, const std::string& about,
                          const std::vector<ShownSchedule>&);

// Returns the page with {{data}} where its data go.
std::string_view timeline_page_text();

}  // namespace antichain
