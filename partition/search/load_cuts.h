// Cuts for the smallest largest load: a stage is charged for what it computes, and once for each tensor that
// comes in or goes out (partition/plan/stage_cost.h).
//
// A tensor that crosses both ends of a stage may pass by, and it is charged once where it does not. So
// with X(D), the time of all tensors that cross the down-set D,
//
//   sent of the stage from E to D  =  X(E) + X(D) - sum over tensors that cross both of
//                                       their time, or twice their time where the stage has none of its nodes
//
// and only the few tensors that cross both are looked at for a pair of states.
#pragma once

#include <optional>
#include <vector>

#include "partition/search/least_path.h"

namespace antichain {

// Returns the graph in which each node without work on any device, at the start or the end, sits with its
// only neighbour, where no load and no memory can suffer.
CutGraph without_idle_ends(const CutGraph&, const Profile&, const PlanOptions&);

class LoadCuts {
 public:
  // Keeps references to the DAGs. Where `fewer`, some devices may be left over.
  LoadCuts(const AntichainDag&, const PlacementDag&, const Profile&, const PlanOptions&, bool fewer);
  // Returns nothing where no cut has less than `below`. None has less than `floor`.
  std::optional<FoundCuts> least(int64_t floor, int64_t below) const;
  int64_t load_ns(int from_state, int to_state, const Move&) const;

 private:
  // A Crossing is a tensor that crosses a state, with how many of its nodes are in the down-set.
  struct Crossing {
    int tensor = 0, inside = 0;
  };
  struct Kind {  // of devices
    const Profile* times = nullptr;
    double speed = 1;
    bool host = false, own = true;      // own: loads add up in the network's own times
    int64_t memory_bytes = 0;           // 0: unlimited
    int most = 0;                       // devices
    std::vector<int64_t> work_ns = {};  // by state
  };

  void find_kinds(const Profile&, const PlanOptions&);
  void find_crossings(const Profile&, const PlanOptions&);
  double work_within(const Kind&, int64_t limit_ns) const;
  int64_t sent_ns(int from_state, int to_state) const;
  const Kind& kind_of(const Move& move) const { return kinds_[size_t(move.crew[0].first)]; }

  const AntichainDag& dag_;
  const PlacementDag& placements_;
  const Objective objective_;
  const bool fewer_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<int>> used_;  // by placement and kind
  std::vector<int64_t> tensor_ns_;
  std::vector<Crossing> crossings_;          // by state, each ascending by tensor
  std::vector<int64_t> crossings_begin_;     // states + 1
  std::vector<int64_t> crossing_ns_;         // X, by state
  std::vector<std::vector<int64_t>> bytes_;  // by micro-batches in flight, then by state
};

}  // namespace antichain
