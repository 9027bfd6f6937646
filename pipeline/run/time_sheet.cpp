#include "pipeline/run/time_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

namespace antichain {

std::string_view name_of(Spent kind) {
  constexpr std::array<std::string_view, kinds_of_spent> names = {
      "forward", "backward", "update", "waiting", "transfer", "data", "test", "checkpoint", "other"};
  return names[size_t(kind)];
}

Spent spent_on(Verb verb) {
  switch (verb) {
    case Verb::load:
      return Spent::data;
    case Verb::recv:
    case Verb::vote:
      return Spent::waiting;
    case Verb::send:
    case Verb::reduce:
      return Spent::transfer;
    case Verb::forward:
      return Spent::forward;
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      return Spent::backward;
    case Verb::update:
      return Spent::update;
  }
  return Spent::other;
}

Spent TimeSheet::enter(Spent kind, Clock::time_point at) {
  if (runs_) {
    at = std::max(at, since_);
    seconds_[size_t(now_)] += std::chrono::duration<double>(at - since_).count();
  }
  runs_ = true;
  since_ = at;
  return std::exchange(now_, kind);
}

void TimeSheet::stop() {
  if (runs_) enter(Spent::other);
  runs_ = false;
}

double TimeSheet::total_s() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double TimeSheet::computing_s() const {
  return seconds(Spent::forward) + seconds(Spent::backward) + seconds(Spent::update);
}

std::string TimeSheet::text() const {
  std::string text;
  for (const double s : seconds_) text += fmt::format("{} ", s);
  return text + fmt::format("{}", starved_s_);
}

TimeSheet TimeSheet::from_text(const std::string& text) {
  TimeSheet sheet;
  std::istringstream in(text);
  for (double& s : sheet.seconds_) in >> s;
  in >> sheet.starved_s_;
  return sheet;
}

}  // namespace antichain
