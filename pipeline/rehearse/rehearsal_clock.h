// The clock that the ranks of a rehearsal share: waits go to absolute times, so that what one wait oversleeps
// is not added to the next, and they yield the core, so that eight ranks can pretend to compute on two.
#pragma once

#include "pipeline/host/starved_time.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class RehearsalClock {
 public:
  // Collective. Ranks of one host read one clock; between hosts, the offset to rank 0's is measured.
  explicit RehearsalClock(Transport&);
  RehearsalClock(const RehearsalClock&) = delete;

  double now_s() const;  // the same on all ranks
  // Returns when `s` has come; beats meanwhile, because a long wait is work here.
  void sleep_until(double s) const;
  // For how long in all this thread has been ready to run but had no core, as the system counts it; 0 where
  // it does not.
  double starved_s() const { return starved_.seconds(); }

 private:
  Transport& transport_;
  double offset_s_ = 0;  // of rank 0's clock against this host's
  StarvedTime starved_;
};

}  // namespace antichain
