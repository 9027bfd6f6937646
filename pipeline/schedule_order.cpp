// The order in which a stage computes, per policy. Backwards ascend in every policy, because weight gradients
// accumulate in micro-batch order; S stages, stage s, M micro-batches.
//
//   1F1B, S = 3, M = 4               GPipe
//   stage 0  F0 F1 F2 B0 F3 B1 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 1  F0 F1 B0 F2 B1 F3 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 2  F0 B0 F1 B1 F2 B2 F3 B3    F0 F1 F2 F3 B0 B1 B2 B3
#include <algorithm>

#include "pipeline/schedule_passes.h"

namespace antichain {
namespace {

// `lead` forwards first, then backwards and forwards in turn: never more than `lead` micro-batches in flight.
std::vector<Action> forwards_ahead(int stage, int lead, int microbatches) {
  std::vector<Action> order;
  for (int m = 0; m < lead; ++m) order.push_back({Verb::forward, stage, m});
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({Verb::backward, stage, m});
    if (m + lead < microbatches) order.push_back({Verb::forward, stage, m + lead});
  }
  return order;
}

std::vector<Action> forwards(int stage, int microbatches) {
  std::vector<Action> order;
  for (int m = 0; m < microbatches; ++m) order.push_back({Verb::forward, stage, m});
  return order;
}

}  // namespace

std::vector<Action> compute_order(Policy policy, int stages, int stage, int microbatches) {
  switch (policy) {
    // Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, made
    // synchronous by a flush: "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021.
    case Policy::one_f_one_b:
      return forwards_ahead(stage, std::min(microbatches, stages - stage), microbatches);
    // Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019,
    // but with the backwards ascending.
    case Policy::gpipe:
      return forwards_ahead(stage, microbatches, microbatches);
    case Policy::forward_only:
      break;
  }
  return forwards(stage, microbatches);
}

}  // namespace antichain
