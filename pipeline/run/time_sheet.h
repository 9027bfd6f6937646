// A TimeSheet says where a rank's time goes while it trains. At every moment the rank does one kind of thing,
// so the kinds add up to the wall time. Changing over reads the clock once, some tens of nanoseconds an
// action.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "pipeline/schedule/schedule.h"

namespace antichain {

enum class Spent {
  forward,
  backward,
  update,
  waiting,     // for tensors of other ranks, and for the last of them at a step's end
  transfer,    // posting sends, delivering the last of a step
  data,        // for the loader
  test,        // evaluating, with all that this waits for
  checkpoint,  // what training waits for
  other,
};
constexpr size_t kinds_of_spent = size_t(Spent::other) + 1;
std::string_view name_of(Spent);
Spent spent_on(Verb);

class TimeSheet {
  using Clock = std::chrono::steady_clock;

 public:
  // From now on time is of this kind; the first call starts the clock. Returns what it was until now.
  Spent enter(Spent kind) { return enter(kind, Clock::now()); }
  // Does the same from a moment in the past on. A moment before the last entry counts as the last entry's.
  Spent enter(Spent, Clock::time_point);
  void stop();  // the clock; enter starts it again

  double seconds(Spent kind) const { return seconds_[size_t(kind)]; }
  double total_s() const;
  double computing_s() const;  // forward, backward, update
  // Returns how much of all that the rank was ready to run while others had the core
  // (pipeline/host/core_time.h).
  double starved_s() const { return starved_s_; }
  void set_starved(double seconds) { starved_s_ = seconds; }

  std::string text() const;  // for other ranks
  static TimeSheet from_text(const std::string&);

 private:
  std::array<double, kinds_of_spent> seconds_{};
  double starved_s_ = 0;
  Spent now_ = Spent::other;
  bool runs_ = false;
  Clock::time_point since_;
};

}  // namespace antichain
