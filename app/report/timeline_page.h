// A timeline page shows timelines of one or several schedules in a browser: a table of their figures, zoom,
// what each action is and waits for, each rank's device and layers, and its memory over time. It is one file
// and loads nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/plan/plan.h"
#include "partition/profile/cluster.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

struct ShownSchedule {
  std::string name;
  std::vector<std::pair<std::string, std::string>> figures;  // header ("step\nms") and cell of a table's row
  Plan plan;
  Cluster cluster;
  Timeline timeline;
  std::vector<MemoryShares> memory;  // of each rank
  bool best = false;
};

struct PageTexts {
  std::string title, about;
  std::vector<std::string> notes;  // below the table of figures
};

// Everything in the page is computed here: its script only draws. It shows equally many steps of every
// schedule. `profile` names the nodes and has what each keeps of a micro-batch. Bytes are those of the table
// of memory (pipeline/program/memory_shares.h). Its share `kept` is drawn as it fills and empties, by what
// the micro-batches in flight keep; all of it is there at their most.
std::string timeline_page(const Profile&, const PageTexts&, const std::vector<ShownSchedule>&);

// Returns the page with {{data}} where its data go.
std::string_view timeline_page_text();

}  // namespace antichain
