// Before the update, the replicas of a stage tell each other what follows, so that all of them learn alike
// from the whole step:
//
//   first   replica j gets part j of everybody's weight gradients, and adds them up in the order of the
//           replicas; batch norm's statistics of every micro-batch go to all, to be absorbed in micro-batch
//           order
//   then    everybody gets the sum of part j from replica j
//
// This is an all-reduce of plain messages, so its bits are those of its order over any transport. Each rank
// sends and receives 2 (r − 1) / r of the weights. None can do with less (Patarasuk and Yuan, "Bandwidth
// Optimal All-reduce Algorithms for Clusters of Workstations", Journal of Parallel and Distributed Computing,
// 2009).
#pragma once

#include <vector>

#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// The channels of its messages come behind those of the schedule.
enum class SumChannel { gradients, sums, statistics };

class ReplicaSum {
 public:
  // Stage and memory must outlive it. `ranks` are those of the stage's replicas.
  ReplicaSum(Stage&, const StageMemory&, const std::vector<int>& ranks, const Seat&, int first_channel);

  // Every replica of the stage calls it. Afterwards the stage's gradients are those of all micro-batches, and
  // the memory has the statistics of all.
  void run(Transport&) const;

  // Returns its messages in the order in which `run` names them, in groups 1 and 2, for a transport that
  // wants to be told.
  std::vector<Turn> turns() const;

 private:
  struct Item {
    Turn turn;
    Tensor tensor;
  };
  void exchange(Transport&, const std::vector<Item>&) const;
  void add_up() const;

  Context& context_;
  const int own_;              // among the replicas
  Tensor part_;                // of the gradients: what this one adds up
  std::vector<Tensor> terms_;  // the same part of the other replicas' gradients
  std::vector<Item> first_, then_;
};

}  // namespace antichain
