// Before the update, the replicas of a stage tell each other what follows, so that all of them learn alike
// from the whole step. They do so bucket by bucket of the weight gradients (gradient_buckets.h):
//
//   reduce-scatter  replica j gets part j of everybody's bucket, and adds them up in the order of the
//                   replicas; batch norm's statistics of every micro-batch go to all with the first bucket,
//                   to be absorbed in micro-batch order
//   all-gather      everybody gets the sum of part j from replica j
//
// Where the replicas share out the optimiser's state, most sums stay where they are, and the all-gather is of
// the updated weights (shard_exchange.h). Which part is whose is in pipeline/program/shards.h.
//
// This is an all-reduce of plain messages, so its bits are those of its order over any transport, whatever
// the buckets. Each rank sends and receives 2 (r − 1) / r of the weights. None can do with less (Patarasuk
// and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", Journal of Parallel and
// Distributed Computing, 2009).
//
// A bucket begins within the stage's last backward. In host memory the rank looks between nodes whether terms
// have arrived, and adds them up at once. On a device it adds them up beside computing, in a second stream.
#pragma once

#include <vector>

#include "pipeline/program/shards.h"
#include "pipeline/run/step_device.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// The channels of its messages come behind those of the schedule.
enum class SumChannel { gradients, sums, statistics, weights };

class ReplicaSum {
 public:
  // Model, memory and device must outlive it.
  ReplicaSum(RankModel&, const StageMemory&, const Shards&, const Seat&, int first_channel, StepDevice&);

  int buckets() const { return int(buckets_.size()); }
  // Every replica of the stage calls these, for one bucket of a step after the other: `begin` when the
  // gradients of the bucket are there, and `finish` when it is needed. `step` is one of those that the
  // schedule has in a row. After the last `finish` the stage's gradients are those of all micro-batches, and
  // the memory has the statistics of all.
  void begin(int bucket, int step, Transport&);
  void finish(int bucket, Transport&);
  // Adds up the buckets whose terms are there, in host memory, and waits for nothing.
  void advance(Transport&);

  // Returns the bucket's messages in the order in which they are named here, in one group for each half, for
  // a transport that wants to be told.
  std::vector<Turn> scatter_turns(int bucket) const { return turns(buckets_[size_t(bucket)].scatter); }
  std::vector<Turn> gather_turns(int bucket) const { return turns(buckets_[size_t(bucket)].gather); }

 private:
  struct Item {
    Turn turn;
    Tensor tensor;
    int statistics_of = -1;  // the micro-batch of a step whose statistics it is
  };
  using Tickets = std::vector<Transport::Ticket>;
  struct Part {
    Tensor own;                 // of the gradients: what this replica adds up
    std::vector<Tensor> terms;  // the same part of the other replicas' gradients
  };
  struct Bucket {
    std::vector<Part> parts;
    std::vector<Item> scatter, gather;
    std::vector<std::pair<Tensor, Tensor>> received;  // a sum, and where it belongs
    Tickets scattered, gathered;
    Moment computed;  // the gradients
  };
  static std::vector<Turn> turns(const std::vector<Item>&);
  static Tickets exchange(Transport&, const std::vector<Item>&);
  void add_bucket(const Tensor& gradients, const Shards&, int first_channel);
  void add_up(Bucket&, Transport&);
  void store(const Bucket&);

  Context& context_;
  StepDevice& device_;
  const StageMemory& memory_;
  const Seat seat_;
  std::vector<Bucket> buckets_;
  int begun_ = 0, added_ = 0;  // buckets of the step
};

}  // namespace antichain
