// Where a rank of a rehearsal is in time: the clock, less what is late by accident.
//
// That the system wakes a rank late, or lets it wait for a core that others use, is an accident of
// pretending, because the ranks that are meant have cores of their own. It is taken off again, on this rank
// and on those that wait for its messages.
#pragma once

#include "pipeline/rehearse/rehearsal_clock.h"

namespace antichain {

class RehearsalTime {
 public:
  explicit RehearsalTime(Transport& transport) : clock_(transport) {}  // collective

  double clock_s() const { return clock_.now_s(); }
  double late_s() const { return late_s_; }  // the clock is so much ahead of where this rank is
  // Now, had this rank always had a core, and been woken in time. It never goes back.
  double here_s();
  void begin(double s);  // a step, when `s` has come: nothing is late
  void sleep_until(double s);

  // Around a wait for a message: before it, what the clock says; after it, when the message was posted by the
  // clock, and how late its sender was then.
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
  double starved_s_ = 0;  // when last asked
};

}  // namespace antichain
