// A trace is a list of labelled time spans per rank, written in the Chrome trace-event format that Perfetto
// (ui.perfetto.dev) and chrome://tracing read. The simulator and the runner write the same labels, so a
// predicted and a measured timeline can be laid over each other.
#pragma once

#include <string>
#include <vector>

namespace antichain {

struct TraceEvent {
  int rank = 0;
  std::string label;     // "0F3"
  std::string category;  // forward, backward, send, recv, load, reduce, step
  double start_s = 0, end_s = 0;
};

std::string to_chrome_trace(const std::vector<TraceEvent>&, const std::string& title);

}  // namespace antichain
