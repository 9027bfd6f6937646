#include "framework/trace.h"

#include <nlohmann/json.hpp>

namespace antichain {

std::string to_chrome_trace(const std::vector<TraceEvent>& events, const std::string& title) {
  nlohmann::json list = nlohmann::json::array();
  for (const TraceEvent& e : events)
    list.push_back({{"name", e.label},
                    {"cat", e.category},
                    {"ph", "X"},
                    {"pid", 0},
                    {"tid", e.rank},
                    {"ts", e.start_s * 1e6},
                    {"dur", (e.end_s - e.start_s) * 1e6}});
  return nlohmann::json{{"traceEvents", list}, {"otherData", {{"title", title}}}}.dump(1);
}

}  // namespace antichain
