// Placements are the ways to use up a cluster's devices, stage by stage. They are the counterpart of the
// antichain DAG: that one says what the first stages can hold, this one which devices they can have, and a
// plan is a path through both at once.
//
//   4 equal devices, one a stage       0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 4        as many placements as stages
//   with replicas                      every 0 ≤ i < j ≤ 4           from i to j: j − i replicas
//   2 fast and 2 slow ones             (0,0) ─▶ (1,0) ─▶ … (2,2)     how many of each kind
//
// Devices of one kind (profile, speed, memory, and node where links differ) are interchangeable, and the
// replicas of a stage have one profile. This keeps the number
// of placements small: 8 different devices have 256.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partition/plan/plan_options.h"

namespace antichain {

// A Move is one more stage, and the devices that do it.
struct Move {
  int from = 0, to = 0;                   // placements
  std::vector<std::pair<int, int>> crew;  // kind, count
  int replicas = 1;
  double speed = 1;                    // of the slowest
  int profile = -1;                    // as Device::profile
  bool host = false;                   // as Device::host
  int64_t memory_bytes = 0;            // the smallest of those that are limited; 0: none is
  int in_flight = 1;                   // micro-batches that each of them has begun and not finished
  bool arrives_between_nodes = false;  // which link the boundary before this stage takes
  bool reduces_between_nodes = false;  // which link its replicas share
};

class PlacementDag {
 public:
  // Builds every way to use exactly `devices` of the cluster's. Returns nothing when there are more than
  // `max_moves`.
  static std::optional<PlacementDag> build(const PlanOptions&, int devices, int max_moves);
  // Builds only those that take devices in this order.
  static PlacementDag in_order(const PlanOptions&, const std::vector<int>& order);
  // Builds only the one in which stages have these crews: a kind each, and how many.
  static PlacementDag of_crews(const PlanOptions&, const std::vector<std::pair<int, int>>& crews);
  // Returns the devices of each kind.
  static std::vector<std::vector<int>> kinds(const PlanOptions&, int devices);

  // Placements are numbered by capacity, so that a move leads to a larger number; 0 is "none used yet".
  int size() const { return int(capacity_.size()); }
  bool complete(int placement) const { return complete_[size_t(placement)]; }
  // Says whether it has every way to use so many devices. One that is made of an order, or of crews, has only
  // that way.
  bool has_all() const { return has_all_; }
  double capacity(int placement) const {
    return capacity_[size_t(placement)];
  }  // sum of speeds of the used devices
  std::span<const Move> into(int placement) const;
  std::span<const Move> moves() const { return moves_; }

  // Returns every path from 0 to a complete placement, or none where there are more than `most`.
  std::vector<std::vector<const Move*>> paths(size_t most) const;
  // Returns the stages of a path from 0 to a complete placement, as lists of devices. Of a kind, the lowest
  // numbers come first.
  std::vector<std::vector<int>> devices(std::span<const Move* const> path) const;

 private:
  friend class PlacementBuilder;
  std::vector<std::vector<int>> kinds_;  // the devices of each kind
  std::vector<double> capacity_;
  std::vector<bool> complete_;
  std::vector<Move> moves_;      // by `to`
  std::vector<int> into_begin_;  // size() + 1, into moves_
  bool has_all_ = false;
};

}  // namespace antichain
