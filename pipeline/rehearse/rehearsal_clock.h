// A RehearsalClock is the clock that the ranks of a rehearsal share. Waits have absolute ends, so one that
// oversleeps does not delay the next. They yield the core, so eight ranks can pretend to compute on two.
#pragma once

#include "pipeline/host/core_time.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class RehearsalClock {
 public:
  // Collective. Ranks of one host read one clock; between hosts, the offset to rank 0's clock is measured.
  explicit RehearsalClock(Transport&);
  RehearsalClock(const RehearsalClock&) = delete;

  double now_s() const;  // the same on all ranks
  // Returns at time `s`. It beats meanwhile, because a long wait stands for work here.
  void sleep_until(double s) const;
  // Returns for how long this thread has been ready to run without a core, as the system counts it; 0 where
  // the system does not.
  double starved_s() const { return starved_.seconds(); }

 private:
  Transport& transport_;
  double offset_s_ = 0;  // of rank 0's clock against this host's
  StarvedTime starved_;
};

}  // namespace antichain
