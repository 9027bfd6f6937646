// A timeline says when each action of a schedule ran. The simulator predicts one, and a traced step measures
// one.
#pragma once

#include <vector>

#include "pipeline/schedule/schedule.h"

namespace antichain {

struct Event {
  int rank = 0;
  Action action;
  double start_s = 0, end_s = 0;
  double delivered_s = 0;  // of a simulated recv: when the message arrived, waited for or not
};

// When a rank first computes, and when its last action, an update or a computation, ends.
struct Span {
  double first_begin_s = 0, last_end_s = 0;
  double seconds() const { return last_end_s - first_begin_s; }
};

struct Timeline {
  std::vector<Event> events;        // by rank, then in order of execution
  double step_s = 0;                // from the first action's start to the last one's end
  std::vector<double> busy_s;       // per rank: forward, backward and update
  double bubble_fraction() const;   // idle rank-seconds / all rank-seconds
  std::vector<Span> spans() const;  // per rank: waiting for the first message does not count
  double span_s() const;            // the longest of them
};

}  // namespace antichain
