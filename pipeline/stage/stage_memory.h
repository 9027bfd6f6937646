// The memory of one rank's step is laid out once from the schedule.
//
//   ring       a tensor per micro-batch in flight; the rank's n-th micro-batch has buffer n mod size. Kept
//              outputs, the stash, received and sent tensors, and statistics are rings.
//   arena      everything that is born and dies within one action, laid over each other by lifetime: outputs
//              that no backward re-reads, gradients on their way through the stage, and, as these go, other
//              replicas' gradients.
//
// The sizes of rings come from slots(schedule), which proves that reusing a buffer never waits on a peer.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "pipeline/schedule/schedule.h"
#include "pipeline/stage/arena.h"
#include "pipeline/stage/rank_model.h"

namespace antichain {

// A Ring goes by micro-batch of the step. Of r replicas each has every r-th of them: micro-batch m is its m /
// r-th.
class Ring {
 public:
  Ring() = default;
  explicit Ring(std::vector<Tensor> buffers, int replicas = 1)
      : buffers_(std::move(buffers)), replicas_(replicas) {}
  const Tensor& operator[](int microbatch) const {
    return buffers_[size_t(microbatch / replicas_) % buffers_.size()];
  }
  int size() const { return int(buffers_.size()); }

 private:
  std::vector<Tensor> buffers_;
  int replicas_ = 1;
};

// A Contribution says how the gradient of one local consumer enters the fold over all consumers of a tensor.
// First the received terms, then the kernel's own are added to the sum; whichever is the fold's first is
// written instead. A kernel that adds to the sum itself (Lowering::adds_dx) needs no term beside it, and the
// bits are the same.
struct Contribution {
  bool wanted = false;                   // whether the input's gradient is wanted at all
  bool starts = false;                   // the sum is still empty
  bool adds = false;                     // the kernel does
  std::vector<Message> received_before;  // remote terms between the previous local one and this one
  Ring sum;                              // where the fold accumulates
  Ring term;                             // where the kernel writes when it does not start the fold
  bool left = false;                     // the term is left there: OutputGradient::term

  bool first() const { return starts && received_before.empty(); }
  bool written_directly() const { return adds || first(); }
  Into into() const { return adds && !first() ? Into::accumulate : Into::overwrite; }
};

// An OutputGradient is what the fold of a node's own output gradient still lacks when its backward comes.
struct OutputGradient {
  Ring sum;                             // empty where the only term is a message: dy is the received tensor
  std::vector<Message> received_after;  // remote terms after the last local one
  bool starts = false;                  // the sum is still empty: no consumer is local
  // The fold's last term, where the node's own kernel adds it as it reads the sum (Lowering::adds_dy), which
  // saves a pass over both; else empty. The bits are the same.
  Ring term;
};

// BackwardMemory has the gradients of one form of a stage's backward. A whole backward is one action, within
// which they are born and die. A parted one is two actions, and the later one, for the weights, reads the
// gradients of its nodes' outputs again.
struct BackwardMemory {
  std::map<NodeId, std::vector<Contribution>> contributions;  // per own node, one per input
  std::map<NodeId, OutputGradient> gradient;                  // per own node
};

// StageMemory has the tensors of one stage of a rank. What another stage of the same rank uses is the same
// ring in both.
struct StageMemory {
  // There is one per node of the graph: outputs of own nodes, loaded inputs, received activations, and
  // outputs of the rank's earlier stages.
  std::map<NodeId, Ring> output;
  std::map<NodeId, std::vector<Ring>> stash, statistics;
  BackwardMemory whole, parted;  // each is empty where the schedule has no such backward of the stage
  // Returns that of the form which has the verb, a backward or one of its halves.
  const BackwardMemory& backward(Verb verb) const { return verb == Verb::backward ? whole : parted; }
  // These are gradients; activations live in `output`. Where both stages are the rank's own, nothing travels:
  // what the later stage "sent" is what the earlier one "received".
  std::map<Message, Ring> sent, received;

  // Where the stage has replicas, these are the statistics of all nodes by micro-batch of the step, those of
  // other replicas too, and for each bucket of gradients room for what each of them sends
  // (pipeline/run/replica_sum.h).
  std::vector<Tensor> all_statistics;
  std::vector<std::vector<Ring>> terms;
};

// RankMemory is the memory of all stages of one rank. They take turns in one arena, because they compute one
// after the other.
class RankMemory {
 public:
  // It is for this rank of the plan. Throws Error when the schedule's slots can't be had, when a node that
  // needs a gradient has no loss behind it, or when the device has no memory left. The model must outlive it.
  RankMemory(RankModel&, const Profile& profile, const Plan&, const Schedule&, int rank, Mode);

  const StageMemory& of(int stage) const { return stages_.at(stage); }
  int64_t bytes() const { return bytes_; }

  // Returns what bytes() would be for this rank of the plan, found by the same layout without allocating
  // anything.
  static int64_t bytes_needed(const Graph&, const Profile& profile, const Plan&, const Schedule&, int rank,
                              Mode);

 private:
  RankMemory() = default;
  class Builder;
  class StageBuilder;
  std::map<int, StageMemory> stages_;
  int64_t bytes_ = 0;
  Tensor arena_;
};

}  // namespace antichain
