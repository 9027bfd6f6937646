// The simulator interprets the very schedule that the runner executes, with profiled times and the cluster's
// devices and links.
//
//   forward, backward, I, W   the times of the stage's nodes, plus the profile's overhead_s, over the
//                             device's speed
//   update                    update_s of the stage's nodes, over the device's speed
//   send                      0 s for the sender: sends are posted. Messages from one rank to another go one
//                             at a time, in the order in which they are posted; each takes
//                             link.seconds(bytes) of the link between the two devices
//   recv                      until the message is there
//   reduce                    begins when the stage's last replica has come, ends for all r at the same time,
//                             after 2 (r − 1) / r x the stage's weights / bytes_per_s of the link among the
//                             replicas
//   load                      0 s: a loader thread stays ahead
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

// Error when the schedule is not valid for the plan, or the plan names a device that the cluster lacks.
Timeline simulate(const Schedule&, const Plan&, const Profile&, const Cluster&);

// Timeline::step_s, bit for bit, of the schedule that make_schedule makes, at a fraction of its price: for
// planners that compare plans. Nothing is validated: the plan must be valid.
double step_s(const Profile&, const Plan&, Policy, int microbatches, const Cluster&);

// Step time of all micro-batches on one device: no messages, no bubble.
double one_device_step_s(const Profile&, int microbatches);

// Peak bytes per rank, from the schedule's slots (the formula is in pipeline/simulate/simulate_memory.cpp):
// weights, gradients, momentum, what is kept for backward, received and sent tensors. Without scratch of
// single kernels.
std::vector<int64_t> peak_memory_bytes(const Schedule&, const Plan&, const Profile&);

// Rank x time, one character a cell: a forward is its micro-batch's last digit, a backward a letter (a for
// 0), with a time axis in ms and a legend. Lines are at most `width` characters wide; at least 40 are used.
std::string draw(const Timeline&, int ranks, int width);

std::string_view category_of(Verb);  // "forward", "backward", "send", "recv", "load", "reduce", "step"

}  // namespace antichain
