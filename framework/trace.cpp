// Writes the JSON object form of the trace-event format: one complete event ("ph": "X") a line, times in
// microseconds, and one named track per rank. Format: "Trace Event Format", the Chromium project.
#include "framework/trace.h"

#include <nlohmann/json.hpp>
#include <set>

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

Json metadata(const std::string& what, int rank, const Json& args) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", rank}, {"args", args}};
}

Json args_of(const TraceEvent& e) {
  Json args = Json::object();
  for (const auto& arg : e.args) {
    std::visit([&](const auto& value) { args[arg.first] = value; }, arg.second);
  }
  return args;
}

Json complete(const TraceEvent& e) {
  return {{"name", e.label},
          {"cat", e.category},
          {"ph", "X"},
          {"pid", 0},
          {"tid", e.rank},
          {"ts", e.start_s * 1e6},
          {"dur", (e.end_s - e.start_s) * 1e6},
          {"args", args_of(e)}};
}

// Returns one line; bytes that are not UTF-8 (such as a user's file name) are replaced instead of refused.
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string to_chrome_trace(const std::vector<TraceEvent>& events, const std::string& title) {
  std::set<int> ranks;
  for (const TraceEvent& e : events) ranks.insert(e.rank);

  std::string text = "{\"displayTimeUnit\": \"ms\",\n\"otherData\": " + line({{"title", title}}) +
                     ",\n\"traceEvents\": [\n" + line(metadata("process_name", 0, {{"name", title}}));
  for (int rank : ranks) {
    text += ",\n" + line(metadata("thread_name", rank, {{"name", "rank " + std::to_string(rank)}}));
    text += ",\n" + line(metadata("thread_sort_index", rank, {{"sort_index", rank}}));
  }
  for (const TraceEvent& e : events) text += ",\n" + line(complete(e));
  return text + "\n]}\n";
}

}  // namespace antichain
