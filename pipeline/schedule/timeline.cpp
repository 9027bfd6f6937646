#include "pipeline/schedule/timeline.h"

#include <algorithm>

namespace antichain {

double Timeline::bubble_fraction() const {
  double busy = 0;
  for (double s : busy_s) busy += s;
  const double all = step_s * double(busy_s.size());
  return all > 0 ? 1 - busy / all : 0;
}

std::vector<Span> Timeline::spans() const {
  std::vector<Span> spans(busy_s.size(), {step_s, 0});
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

}  // namespace antichain
