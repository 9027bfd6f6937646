// Cuts of stages that may compute nodes again: the smallest bottleneck where every stage fits its devices,
// and the smallest devices that would do.
//
// What a stage recomputes depends on both of its ends, so here pairs of states are compared (least_path.h),
// by what they take without recomputation, and the choice is searched of those that may be the best
// (recompute_search.h). A first search, of few states, says what the second need
// not look at. Where there are many states, only those are compared at which fewest bytes cross.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "partition/search/least_path.h"
#include "partition/search/stage_fitter.h"

namespace antichain {

class RecomputingCuts {
 public:
  // Keeps references to all.
  RecomputingCuts(const AntichainDag&, const PlacementDag&, const Profile&, const PlanOptions&,
                  const StageFitter&);

  // Return nothing where no cut has less than `below`.
  std::optional<FoundCuts> least_time(int64_t below);
  std::optional<FoundCuts> least_memory(int64_t below);
  // Says whether all states were compared, and every choice so far was certainly the best.
  bool exact() const { return exact_; }

 private:
  using Cost = std::function<int64_t(int from, int to, const Move&)>;
  // `may_end` says whether a placement may end at a state.
  using MayEnd = std::function<bool(int placement, int state, int64_t below)>;
  std::optional<FoundCuts> least(int64_t below, size_t most_states, const MayEnd&, const Cost& at_least,
                                 const Cost& cost);
  std::vector<int> narrow(size_t most) const;

  const AntichainDag& dag_;
  const PlacementDag& placements_;
  const BottleneckSearch prices_;
  const std::vector<int64_t> least_work_ns_;  // of each state's down-set, on whichever device
  const StageFitter& fitter_;
  bool exact_ = true;
};

// Returns where a stage runs that a move adds.
StageSeat seat_of(const Move&);

}  // namespace antichain
