#include "pipeline/rehearse/rehearsal_time.h"

#include <algorithm>
#include <utility>

namespace antichain {

double RehearsalTime::here_s() {
  late_s_ += starved_anew_s();
  const double now_s = clock_.now_s();
  return arrive(now_s, now_s - late_s_);
}

// The result is never below 0, although the system counts core time by several clocks.
double RehearsalTime::starved_anew_s() {
  const double starved_s = clock_.starved_s();
  return std::max(0., starved_s - std::exchange(starved_s_, starved_s));
}

// The clock says `now_s`. This rank is now at `s`, or stays where it was if that is later.
double RehearsalTime::arrive(double now_s, double s) {
  reached_s_ = std::max(reached_s_, s);
  late_s_ = now_s - reached_s_;
  return reached_s_;
}

void RehearsalTime::begin(double s) {
  reached_s_ = late_s_ = 0;
  starved_anew_s();
  sleep_until(s);
}

void RehearsalTime::sleep_until(double s) {
  if (here_s() >= s) return;
  clock_.sleep_until(s);
  starved_anew_s();  // the lateness already contains it
  arrive(clock_.now_s(), s);
}

// A message that came while this rank waited would have come earlier if its sender had not been late and this
// rank had had a core, but not before this rank began to wait.
void RehearsalTime::got(double asked_s, double posted_s, double sender_late_s) {
  if (posted_s <= asked_s) return;
  const double came_s = clock_.now_s();
  const double coreless_s = std::min(starved_anew_s(), came_s - posted_s);
  arrive(came_s, came_s - sender_late_s - coreless_s);
}

}  // namespace antichain
