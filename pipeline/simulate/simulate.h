// The simulator interprets the very schedule that the runner executes, with profiled times and the cluster's
// devices and links.
//
//   forward, backward, I, W   takes the times of the stage's nodes by the profile of the device's kind, plus
//                             that profile's overhead_s, over the device's speed
//   update                    takes update_s of the stage's nodes, over the device's speed
//   send                      takes 0 s for the sender, because sends are posted. Messages from one rank to
//                             another go one at a time, in posting order; each takes link.seconds(bytes) of
//                             the link between the two devices
//   recv                      lasts until the message is there
//   reduce                    lasts until its bucket is added up and all replicas have come to it. Adding up
//                             begins when the last backward of every replica has passed the bucket's nodes
//                             and the bucket before is done, which may be before a rank comes to its reduce.
//                             It takes 2 (r − 1) / r x the bucket's weights / bytes_per_s of the link among
//                             the replicas
//   vote                      lasts until all ranks have come to it, rank 0 has heard of the last one and all
//                             have heard of rank 0: two latencies
//   load                      takes 0 s, because a loader thread stays ahead
//
// Where steps overlap, a rank begins its next step as soon as its own list is done. If that makes the period
// shorter than the step, the timeline is that of a step in the steady state, whose ranks begin at different
// times.
#pragma once

#include <string>
#include <string_view>

#include "partition/plan/steps.h"
#include "partition/profile/cluster.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/timeline.h"
#include "pipeline/simulate/steady_step.h"

namespace antichain {

// Throws Error when the schedule is not valid for the plan, or the plan names a device that the cluster
// lacks.
Timeline simulate(const Schedule&, const Plan&, const Profile&, const Cluster&, Steps = Steps::apart);

// Returns Timeline::step_s, bit for bit, of the schedule that make_flowing_schedule makes, in a fraction of
// the time. Planners use it to compare plans. It validates nothing: the plan must be valid.
double step_s(const Profile&, const Plan&, const Policy&, int microbatches, const Cluster&);
// Returns Timeline::step_s and Timeline::period_s of the same schedule.
Pace pace(const Profile&, const Plan&, const Policy&, int microbatches, const Cluster&, Steps);

// Returns what the pace would be if all stages took equal times, with the same messages: the difference is
// what the uneven cut costs.
Pace even_pace(const Profile&, const Plan&, const Policy&, int microbatches, const Cluster&, Steps);

// Returns the step time of all micro-batches on one device, without messages and bubble.
double one_device_step_s(const Profile&, int microbatches);

// Draws rank x time, one character a cell. A forward is its micro-batch's last digit, a backward a letter (a
// for 0); there are a time axis in ms and a legend. Lines have at most `width` characters, or 40 if that is
// more. Where steps overlap, it is one period of the steady state.
std::string draw(const Timeline&, int ranks, int width);

std::string_view category_of(
    Verb);  // "forward", "backward", "send", "recv", "load", "reduce", "vote", "step"

}  // namespace antichain
