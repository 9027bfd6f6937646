// A RehearsalTime is a rank's own time in a rehearsal: the clock, less accidental delays.
//
// The system may wake a rank late or let it wait for a core that others use. That is an accident of
// pretending, because the simulated ranks have cores of their own. So these delays are subtracted again, on
// this rank and on those that wait for its messages.
#pragma once

#include "pipeline/rehearse/rehearsal_clock.h"

namespace antichain {

class RehearsalTime {
 public:
  explicit RehearsalTime(Transport& transport) : clock_(transport) {}  // collective

  double clock_s() const { return clock_.now_s(); }
  double late_s() const { return late_s_; }  // how far the clock is ahead of this rank's time
  // Returns the time it would be if this rank always had a core and was woken in time. It never goes back.
  double here_s();
  void begin(double s);  // starts a step at time `s`, when nothing is late
  void sleep_until(double s);

  // Call these around a wait for a message. asked_s() comes before it and returns the clock's time; got()
  // comes after it, with the clock time at which the message was posted and its sender's lateness then.
  double asked_s() {
    const double s = here_s();
    return s + late_s_;
  }
  void got(double asked_s, double posted_s, double sender_late_s);

 private:
  double starved_anew_s();
  double arrive(double now_s, double s);

  RehearsalClock clock_;
  double reached_s_ = 0, late_s_ = 0;
  double starved_s_ = 0;  // at the last query
};

}  // namespace antichain
