#include "pipeline/simulate/trace_events.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace antichain {
namespace {

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::load:
      return "load";
    case Verb::recv:
      return "receive";
    case Verb::forward:
      return "forward";
    case Verb::backward:
      return "backward";
    case Verb::backward_input:
      return "input gradients";
    case Verb::backward_weight:
      return "weight gradients";
    case Verb::send:
      return "send";
    case Verb::reduce:
      return "all-reduce";
    case Verb::vote:
      return "vote";
    case Verb::update:
      break;
  }
  return "update";
}

bool carries(const Action& a) { return a.verb == Verb::send || a.verb == Verb::recv; }

// The stage is named where the rank has several.
std::string name_of(const Action& a, bool several_stages) {
  std::string name(name_of(a.verb));
  if (carries(a)) name += fmt::format(" {}", words_of(a.message.flow));
  if (a.microbatch >= 0) name += fmt::format(" {}", a.microbatch);
  if (a.bucket >= 0) name += fmt::format(", bucket {}", a.bucket);
  return several_stages ? fmt::format("{}, stage {}", name, a.stage) : name;
}

TraceEvent to_event(const Event& e, const Profile& profile, bool several_stages) {
  const Action& a = e.action;
  TraceEvent event{e.rank, name_of(a, several_stages), std::string(category_of(a.verb)), e.start_s, e.end_s};
  event.args = {{"action", print(a)}, {"stage", int64_t(a.stage)}};
  if (a.microbatch >= 0) event.args.emplace_back("microbatch", int64_t(a.microbatch));
  if (a.bucket >= 0) event.args.emplace_back("bucket", int64_t(a.bucket));
  if (!carries(a)) return event;
  const ProfileNode& tensor = profile.nodes.at(size_t(a.message.tensor));
  event.args.emplace_back(a.verb == Verb::send ? "to rank" : "from rank", int64_t(a.peer));
  event.args.emplace_back("tensor", tensor.name);
  event.args.emplace_back("bytes", message_bytes(profile, a.message));
  return event;
}

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

std::vector<TraceEvent> to_trace(const Timeline& timeline, const Profile& profile) {
  std::map<int, std::set<int>> stages;  // of each rank
  for (const Event& e : timeline.events) stages[e.rank].insert(e.action.stage);
  std::vector<TraceEvent> trace;
  for (const Event& e : timeline.events) trace.push_back(to_event(e, profile, stages.at(e.rank).size() > 1));
  return trace;
}

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
