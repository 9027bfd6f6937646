#include "pipeline/host/standstill.h"

#include <unistd.h>

namespace antichain {

RankState Standstill::look(double now_s) {
  rank_->examine();
  RankState state = rank_->read();
  if (state.beats != beats_ || since_s_ == 0) {
    beats_ = state.beats;
    since_s_ = now_s;
    starved_.reset();
  }
  // Asking the system about every thread costs more than the rest of the watchdog. So this waits until the
  // answer may matter.
  if (starved_)
    starved_->look();
  else if (state.limit_s > 0 && now_s - since_s_ > state.limit_s / 10)
    starved_.emplace(::getpid());
  if (starved_) state.starved_s = starved_->seconds();
  return state;
}

}  // namespace antichain
