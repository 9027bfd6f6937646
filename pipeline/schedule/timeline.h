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

// A Span says when a rank first computes, and when its last action, an update or a computation, ends.
struct Span {
  double first_begin_s = 0, last_end_s = 0;
  double seconds() const { return last_end_s - first_begin_s; }
};

struct Timeline {
  std::vector<Event> events;  // by rank, then in order of execution
  // Where the schedule has several steps in a row, the next three are a step's share of them all.
  double step_s = 0;                // from an empty pipeline to an empty one
  double period_s = 0;              // from a step to the next; equals step_s where steps do not overlap
  std::vector<double> busy_s;       // per rank: forward, backward and update
  int steps = 1;                    // of the events
  double length_s() const;          // from the first action's start to the last one's end
  double bubble_fraction() const;   // idle rank-seconds / all rank-seconds of a period
  std::vector<Span> spans() const;  // per rank: waiting for the first message does not count
  double span_s() const;            // the longest of them
};

// Moves the timeline so that its first action begins at 0.
void begin_at_zero(Timeline&);
// Returns the timeline of so many runs of the schedule, each its steps' periods after the one before.
Timeline repeated(const Timeline&, int runs);
// Makes the figures those of one step, where they are of all that the schedule has.
void share_out(Timeline&, const Schedule&);
// Returns what happens within one period of the steady state, from 0 to its end. What a step does later
// stands at the beginning, as the end of the step before.
Timeline one_period(const Timeline&);

}  // namespace antichain
