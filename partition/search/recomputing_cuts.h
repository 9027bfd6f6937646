// Cuts of stages that may compute nodes again: the smallest bottleneck where every stage fits its devices, and
// the smallest devices that would do.
//
// What a stage recomputes depends on both of its ends, so here pairs of states are compared. For each
// placement and state they come by what they take without recomputation, and only those that may be the best
// have their choice searched (recompute_search.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "partition/search/bottleneck.h"
#include "partition/search/recompute_search.h"

namespace antichain {

class RecomputingCuts {
 public:
  // Keeps references to all.
  RecomputingCuts(const AntichainDag&, const PlacementDag&, const Profile&, const PlanOptions&);
  static bool possible(const AntichainDag&);

  struct Found {
    Cuts cuts;
    int64_t most = 0;  // nanoseconds of the bottleneck, or bytes of the fullest device
  };
  // Return nothing where no cut has less than `below`.
  std::optional<Found> least_time(int64_t below);
  std::optional<Found> least_memory(int64_t below);
  // Says whether every choice so far was certainly the best.
  bool exact() const { return exact_; }

 private:
  using Cost = std::function<int64_t(int from, int to, const Move&)>;
  std::optional<Found> least(int64_t below, const Cost& at_least, const Cost& cost);

  const AntichainDag& dag_;
  const PlacementDag& placements_;
  const BottleneckSearch prices_;
  const StageFitter fitter_;
  bool exact_ = true;
};

// Returns where a stage runs that a move adds.
StageSeat seat_of(const Move&);

}  // namespace antichain
