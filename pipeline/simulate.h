// The simulator interprets the very schedule that the runner executes, with profiled times and the measured link.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "framework/trace.h"
#include "pipeline/schedule.h"

namespace antichain {

struct Event {
  int rank = 0;
  Action action;
  double start_s = 0, end_s = 0;
};

struct Timeline {
  std::vector<Event> events;         // by rank, then in order of execution
  double step_s = 0;                 // from the first action's start to the last one's end
  std::vector<double> busy_s;        // per rank: forward, backward and update
  double bubble_share() const;       // idle rank-seconds / all rank-seconds
};

Timeline simulate(const Schedule&, const Plan&, const Profile&, const Link&);

// Step time of all micro-batches on one device: no messages, no bubble.
double one_device_step_s(const Profile&, int microbatches);

// Peak bytes per rank: weights, gradients, optimiser state, slots, received and sent tensors.
std::vector<int64_t> peak_memory_bytes(const Schedule&, const Plan&, const Profile&);

// Rank x time, one character a cell (forward: the micro-batch's digit; backward: a letter or shade), `width` wide.
std::string draw(const Timeline&, int ranks, int width);

// Chrome/Perfetto trace with the schedule's labels; the measured trace of a run has the same form.
std::vector<TraceEvent> to_trace(const Timeline&);

}  // namespace antichain
