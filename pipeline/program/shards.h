// The replicas of a stage share out the work on its weight gradients. Each replica adds up a part of every
// bucket. Where the plan shards the optimiser, it alone updates the weights of this part, and nobody else has
// their slots (stage 1 of ZeRO: Rajbhandari, Rasley, Ruwase and He, "ZeRO: Memory Optimizations Toward
// Training Trillion Parameter Models", SC 2020). Shards say which replica has which part:
//
//   otherwise              a bucket is cut into r equal parts, whose sums go to all
//   sharded, by element    a run of such weights (framework/by_element.h) is cut into r equal parts
//   sharded, whole         a weight whose update needs all of it goes to the replica that has the fewest
//                          bytes of such, so that none has more than 1 / r of them and the largest one
//                          (Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM Journal on Applied
//                          Mathematics, 1969)
//   sharded, of several    a weight that several nodes have is cut into r equal parts in each of them. The
//   nodes                  sums are then added up over the nodes, part by part, so their stages must have
//                          equally many replicas. If not, or if its update needs all of it, the sums go to
//                          all, and each replica updates it
//
// Gradients here are those of a stage, which lie one behind the other (pipeline/stage/rank_model.h).
#pragma once

#include <vector>

#include "pipeline/program/parts.h"
#include "pipeline/program/step_network.h"
#include "pipeline/schedule/compute_order.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct Shard {
  ByteRange of;  // the gradients
  int bucket = 0;
  int owner = 0;        // the replica that adds it up
  bool for_all = true;  // whether its sum goes to all, and all update it
  int number = 0;       // among those of its owner
};

// A Share is the part of one weight, in bytes from its beginning, whose slots one replica has.
struct Share {
  int owner = 0;
  ByteRange of;
};

// Shards are those of one stage, as one of its replicas has them.
struct Shards {
  std::vector<int> ranks;  // of the replicas; none where there is one
  int own = 0;             // this one, among the replicas
  int buckets = 0;
  std::vector<Shard> all;  // bucket by bucket, in the order of memory in each

  // Says whether any slots are not on all replicas.
  bool of_state() const;
  // Returns who has the slots of a weight whose gradient lies there, in the order of memory; nobody where all
  // replicas have them.
  std::vector<Share> of_weight(const ByteRange& gradient) const;
  // Returns the most bytes that one replica adds up of a bucket.
  int64_t most_bytes(int bucket) const;
};

Shards shards_of(const StepNetwork&, const Profile&, const Plan&, const std::vector<Action>& of_rank,
                 const Seat&);
// Returns those of the rank's only stage, or none where it has several.
Shards shards_of(const Graph& lowered, const Optimiser&, const Profile&, const Plan&, const Schedule&,
                 int rank);

}  // namespace antichain
