// This file writes a timeline as a trace: labelled time spans per rank in the Chrome trace-event format,
// which Perfetto (ui.perfetto.dev) and chrome://tracing read. Predicted, rehearsed and measured traces have
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

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/simulate/simulate.h"

namespace antichain {

struct TraceEvent {
  int rank = 0;
  std::string label;     // "forward 3"
  std::string category;  // "forward"
  double start_s = 0, end_s = 0;
  using Value = std::variant<int64_t, std::string>;
  std::vector<std::pair<std::string, Value>> args = {};  // what a viewer shows of the span that is chosen
};

// `profile` must have the nodes of the timeline's messages.
std::vector<TraceEvent> to_trace(const Timeline&, const Profile& profile);

// Returns the JSON object form of the format: one complete event ("ph": "X") a line, times in microseconds,
// and one named track per rank (the Chromium project, "Trace Event Format").
std::string to_chrome_trace(const std::vector<TraceEvent>&, const std::string& title);

}  // namespace antichain
