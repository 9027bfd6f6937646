#include "pipeline/schedule/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace antichain {
namespace {

Event later(Event event, double by_s) {
  event.start_s += by_s, event.end_s += by_s, event.delivered_s += by_s;
  return event;
}

}  // namespace

double Timeline::length_s() const {
  double last_s = 0;
  for (const Event& event : events) last_s = std::max(last_s, event.end_s);
  return last_s;
}

double Timeline::bubble_fraction() const {
  double busy = 0;
  for (double s : busy_s) busy += s;
  const double all = period_s * double(busy_s.size());
  return all > 0 ? 1 - busy / all : 0;
}

std::vector<Span> Timeline::spans() const {
  std::vector<Span> spans(busy_s.size(), {length_s(), 0});
  for (const Event& event : events) {
    Span& span = spans[size_t(event.rank)];
    if (computes(event.action.verb)) span.first_begin_s = std::min(span.first_begin_s, event.start_s);
    if (computes(event.action.verb) || event.action.verb == Verb::update)
      span.last_end_s = std::max(span.last_end_s, event.end_s);
  }
  return spans;
}

double Timeline::span_s() const {
  double longest_s = 0;
  for (const Span& span : spans()) longest_s = std::max(longest_s, span.seconds());
  return longest_s;
}

void begin_at_zero(Timeline& timeline) {
  double first_s = std::numeric_limits<double>::infinity();
  for (const Event& event : timeline.events) first_s = std::min(first_s, event.start_s);
  for (Event& event : timeline.events) event = later(event, -first_s);
}

void share_out(Timeline& timeline, const Schedule& schedule) {
  timeline.steps = schedule.steps;
  timeline.step_s /= schedule.steps, timeline.period_s /= schedule.steps;
  for (double& busy_s : timeline.busy_s) busy_s /= schedule.steps;
}

Timeline repeated(const Timeline& timeline, int runs) {
  const double run_s = timeline.period_s * timeline.steps;
  Timeline all = timeline;
  all.events.clear();
  for (size_t begin = 0, end = 0; begin < timeline.events.size(); begin = end) {
    while (end < timeline.events.size() && timeline.events[end].rank == timeline.events[begin].rank) ++end;
    for (int run = 0; run < runs; ++run)
      for (size_t i = begin; i < end; ++i) all.events.push_back(later(timeline.events[i], run * run_s));
  }
  return all;
}

Timeline one_period(const Timeline& timeline) {
  const double period_s = timeline.period_s * timeline.steps;
  if (period_s <= 0 || period_s >= timeline.length_s()) return timeline;
  Timeline folded = timeline;
  folded.events.clear();
  for (const Event& event : timeline.events) {
    const double turns = std::floor(event.start_s / period_s);
    Event first = later(event, -turns * period_s);
    const double rest_s = first.end_s - period_s;
    if (rest_s > 0) {
      Event second = first;
      second.start_s = 0, second.end_s = std::min(rest_s, period_s);
      first.end_s = period_s;
      folded.events.push_back(second);
    }
    folded.events.push_back(first);
  }
  std::ranges::stable_sort(folded.events, {}, [](const Event& e) { return std::pair(e.rank, e.start_s); });
  return folded;
}

}  // namespace antichain
