// Crews for a cluster of several kinds of devices, where stages may have replicas.
//
// There are too many placements of hundreds of devices to build them all. But a stage of a given time needs
// so many devices of one kind, and devices of a kind are alike. So a threshold asks for a path through the
// antichain DAG whose stages need no more devices of any kind than there are. With a price for a device of
// each kind there is a cheapest path, and where even that costs more than all devices, no plan keeps the
// threshold. Prices rise where a kind is asked for too much (M. L. Fisher, "The Lagrangian Relaxation Method
// for Solving Integer Programming Problems", Management Science 1981). Paths of least cost are then looked
// for by labels, which say what they use of each kind. Where no label was left out, that there is none is a
// proof as well.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "partition/search/antichain_dag.h"
#include "partition/search/placements.h"

namespace antichain {

struct KindCrews {
  // These are a kind's number in PlacementDag::kinds and a count of devices, by stage. There are none where
  // no plan was found.
  std::vector<std::pair<int, int>> crews;
  int64_t lower_bound_ns = 0;  // the slowest stage of no plan takes less
};

// `low` is a bound on the slowest stage, in nanoseconds. The objective must not be a load (of_loads), and no
// two kinds may be in one stage. The work grows with the square of the states.
KindCrews crews_by_kind(const AntichainDag&, const Profile&, const PlanOptions&, int64_t low);

}  // namespace antichain
