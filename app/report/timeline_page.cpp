#include "app/report/timeline_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/number_text.h"
#include "app/report/plan_report.h"
#include "framework/printable.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

// Returns the letter by which the page colours an action, or 0 for those that take no time to look at.
char letter_of(Verb verb) {
  switch (verb) {
    case Verb::forward:
      return 'F';
    case Verb::backward:
      return 'B';
    case Verb::backward_input:
      return 'I';
    case Verb::backward_weight:
      return 'W';
    case Verb::reduce:
      return 'A';
    case Verb::vote:
      return 'V';
    case Verb::update:
      return 'U';
    case Verb::load:
    case Verb::recv:
    case Verb::send:
      break;
  }
  return 0;
}

std::string wait_of(const Event& recv, const Profile& profile) {
  const Message& message = recv.action.message;
  return fmt::format(
      "waited {} ms for the {} of {}, micro-batch {}, from rank {}", milliseconds(recv.end_s - recv.start_s),
      message.flow == Flow::activation ? "output" : words_of(message.flow),
      printable(profile.nodes[size_t(message.tensor)].name), recv.action.microbatch, recv.action.peer);
}

// Returns each event as [rank, letter, stage, micro-batch, begin, end, what it waited for].
Json events_of(const Timeline& timeline, const Profile& profile) {
  Json events = Json::array();
  std::string waits;
  int rank = -1;
  for (const Event& e : timeline.events) {
    if (e.rank != std::exchange(rank, e.rank)) waits.clear();
    if (e.action.verb == Verb::recv && e.end_s > e.start_s) waits = wait_of(e, profile);
    const char letter = letter_of(e.action.verb);
    if (letter == 0 || e.end_s <= e.start_s) continue;
    events.push_back({e.rank, std::string(1, letter), e.action.stage, e.action.microbatch, e.start_s, e.end_s,
                      std::exchange(waits, {})});
  }
  return events;
}

// Returns for each rank the words for its device, and for each of its stages the words for its layers.
Json ranks_of(const ShownSchedule& shown, const Profile& profile) {
  Json ranks = Json::array();
  for (int rank = 0; rank < shown.plan.ranks(); ++rank) {
    Json layers = Json::array();
    for (const int stage : stages_of_rank(shown.plan, rank))
      layers.push_back(fmt::format("stage {}, nodes {}", stage,
                                   layers_in_short(shown.plan.stages[size_t(stage)], profile)));
    ranks.push_back(
        {{"device", device_in_short(shown.plan.device_of(rank), shown.cluster)}, {"layers", layers}});
  }
  return ranks;
}

// Returns for each rank a list of moments, and of the bytes from each moment on.
Json memory_of(const ShownSchedule& shown, const Timeline& timeline, const Profile& profile) {
  std::vector<int64_t> kept;  // of a micro-batch, by stage
  for (const PlanStage& stage : shown.plan.stages)
    kept.push_back(sum_of(profile, stage.nodes, stage.recomputed).kept_bytes);
  std::vector<std::vector<std::pair<double, int64_t>>> changes(shown.memory.size());
  for (const Event& e : timeline.events) {
    const Verb verb = e.action.verb;
    if (verb == Verb::forward) changes[size_t(e.rank)].push_back({e.start_s, kept[size_t(e.action.stage)]});
    if (verb == Verb::backward || verb == Verb::backward_weight)
      changes[size_t(e.rank)].push_back({e.end_s, -kept[size_t(e.action.stage)]});
  }
  Json all = Json::array();
  for (size_t rank = 0; rank < changes.size(); ++rank) {
    std::ranges::sort(changes[rank]);
    int64_t now = 0, most = 1;
    for (const auto& [at_s, bytes] : changes[rank]) most = std::max(most, now += bytes);
    const MemoryShares& shares = shown.memory[rank];
    const auto bytes_at = [&](int64_t in_flight) {
      return shares.bytes() - shares.kept + int64_t(double(shares.kept) * double(in_flight) / double(most));
    };
    Json curve = Json::array({Json::array({0., bytes_at(0)})});
    now = 0;
    for (size_t i = 0; i < changes[rank].size(); ++i) {
      now += changes[rank][i].second;
      const double at_s = changes[rank][i].first;
      if (i + 1 == changes[rank].size() || changes[rank][i + 1].first > at_s)
        curve.push_back({at_s, bytes_at(now)});
    }
    curve.push_back({timeline.length_s(), bytes_at(now)});
    all.push_back(curve);
  }
  return all;
}

}  // namespace

std::string timeline_page(const Profile& profile, const PageTexts& texts,
                          const std::vector<ShownSchedule>& schedules) {
  const bool overlap = std::ranges::any_of(
      schedules, [](const ShownSchedule& s) { return s.timeline.period_s < s.timeline.step_s; });
  const int steps = overlap ? 3 : 1;  // where they overlap, the one in the middle is the steady state
  Json data = {{"title", texts.title},
               {"about", texts.about},
               {"notes", texts.notes},
               {"steps", steps},
               {"schedules", Json::array()}};
  for (const ShownSchedule& shown : schedules) {
    const Timeline all = repeated(shown.timeline, steps);
    data["schedules"].push_back({{"name", shown.name},
                                 {"best", shown.best},
                                 {"figures", shown.figures},
                                 {"ranks", ranks_of(shown, profile)},
                                 {"several_stages", has_several_stages_a_rank(shown.plan)},
                                 {"length_s", all.length_s()},
                                 {"events", events_of(all, profile)},
                                 {"memory", memory_of(shown, all, profile)}});
  }
  std::string text = data.dump(-1, ' ', true);
  // "</script>" within a name would end the page's script.
  for (size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.replace(at, 2, "<\\/");
  std::string page(timeline_page_text());
  constexpr std::string_view mark = "{{data}}";
  return page.replace(page.find(mark), mark.size(), text);
}

}  // namespace antichain
