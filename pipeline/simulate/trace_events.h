// This file writes a timeline as a trace (framework/trace.h). Predicted, rehearsed and measured traces have
// the same names and arguments, so that they can be compared in one view.
//
//   name                                              arguments
//   load 3, forward 3, backward 3                     stage, microbatch, action: the schedule's word, "0F3"
//   input gradients 3, weight gradients 3             the same, where a schedule separates them
//   send activation 3, receive gradient 3             and the peer, the tensor (the node whose output or
//                                                     gradient it is), its bytes
//   all-reduce, update                                stage, action
//
// Where a rank has several stages, names end in the stage: "forward 3, stage 5".
#pragma once

#include <vector>

#include "framework/trace.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

// `profile` must have the nodes of the timeline's messages.
std::vector<TraceEvent> to_trace(const Timeline&, const Profile& profile);

}  // namespace antichain
