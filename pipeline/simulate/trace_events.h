// A timeline as a trace (framework/trace.h). What is predicted, rehearsed and measured has the same names and
// arguments, so that the traces can be laid over each other.
//
//   name                                              arguments
//   load 3, forward 3, backward 3                     stage, microbatch, action: the schedule's word, "0F3"
//   input gradients 3, weight gradients 3             the same, where a schedule parts them
//   send activation 3, receive gradient 3             and the peer, the tensor (the node whose output or
//                                                     gradient it is), its bytes
//   all-reduce, update                                stage, action
#pragma once

#include <vector>

#include "framework/trace.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

// `network` has the nodes of the timeline's messages.
std::vector<TraceEvent> to_trace(const Timeline&, const Profile& network);

}  // namespace antichain
