// A Standstill watches one rank of this process. While the rank makes no progress, it measures for how much
// of that time the rank had no core: a rank that is ready to run but gets no core is slow and does not hang.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/host/progress.h"
#include "pipeline/host/starved_threads.h"

namespace antichain {

class Standstill {
 public:
  explicit Standstill(const Progress& rank) : rank_(&rank) {}

  // Returns the rank's record, starved_s included. Only the watchdog's thread calls this, several times
  // within the rank's limit.
  RankState look(double now_s);

 private:
  const Progress* rank_;
  uint64_t beats_ = 0;
  double since_s_ = 0;
  std::optional<StarvedThreads> starved_;  // set once the rank has stood still for a while
};

}  // namespace antichain
