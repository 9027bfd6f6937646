// A trace is a list of labelled time spans per rank, written in the Chrome trace-event format that Perfetto
// (ui.perfetto.dev) and chrome://tracing read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace antichain {

struct TraceEvent {
  int rank = 0;
  std::string label;     // "forward 3"
  std::string category;  // "forward"
  double start_s = 0, end_s = 0;
  using Value = std::variant<int64_t, std::string>;
  std::vector<std::pair<std::string, Value>> args = {};  // what a viewer shows of the span that is chosen
};

std::string to_chrome_trace(const std::vector<TraceEvent>&, const std::string& title);

}  // namespace antichain
