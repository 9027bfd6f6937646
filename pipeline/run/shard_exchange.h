// Where the replicas of a stage share out the optimiser's state (pipeline/program/shards.h), this is what
// they send each other besides their gradients' terms:
//
//   weights   after an update, each replica sends its part of the weights to all others
//   squares   of a gradient's norm, where several replicas have a weight: in the order of memory each adds
//             its part to what the one before has sent, so that the bits are those of the whole gradient
//   slots     of a checkpoint, to the first replica, which writes it
//
// Messages go from the weights into the weights, so none of this takes memory.
#pragma once

#include "pipeline/run/gradient_norm.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_state.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class ShardExchange {
 public:
  // The model has shards, and all replicas call the same functions in the same order. Model and transport
  // must outlive it. Between steps replicas send each other nothing else, so any channel will do.
  ShardExchange(RankModel& model, Transport& transport, int channel = 0)
      : model_(model), transport_(transport), channel_(channel) {}

  // After this all weights are there, and what is prepared of them.
  void gather_weights();
  // Returns the squares of the gradients that this replica adds up the last part of.
  SquaresByName squares();
  // Sends this replica's part of a slot to the first replica, or, on that one, has all others in `whole`.
  void gather_slot(const ParamUse&, const Tensor& own, const Tensor& whole);

 private:
  bool is_own(const Share& share) const { return share.owner == model_.shards().own; }
  int rank_of(int replica) const { return model_.shards().ranks[size_t(replica)]; }
  // Parameters are numbered in the order of memory.
  template <class F>
  void for_each_shared_out(const F& f) const;

  RankModel& model_;
  Transport& transport_;
  const int channel_;
};

// Exchanges weights and averages on all replicas. Returns false where there are no averages.
bool swap_averages(RankModel&, Transport&);

class ShardedNorm final : public GradientNorm {
 public:
  ShardedNorm(RankModel& model, ShardExchange& exchange) : model_(model), exchange_(exchange) {}
  SquaresByName squares() override { return exchange_.squares(); }
  void scale(float factor) override;
  void clip(double most) override;

 private:
  RankModel& model_;
  ShardExchange& exchange_;
};

}  // namespace antichain
