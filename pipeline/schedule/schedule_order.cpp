// The order in which a rank computes, per policy. Backwards ascend in every policy, because weight gradients
// accumulate in micro-batch order; S stages, stage s, M micro-batches.
//
//   1F1B, S = 3, M = 4               GPipe
//   stage 0  F0 F1 F2 B0 F3 B1 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 1  F0 F1 B0 F2 B1 F3 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 2  F0 B0 F1 B1 F2 B2 F3 B3    F0 F1 F2 F3 B0 B1 B2 B3
//
// Replicas do the same with their share. The first stage on two devices, the second on one, 1F1B, M = 5:
//
//   stage 0  F0 F2 B0 F4 B2 B4          2 of each in flight: 3 devices from here on, shared by 2 replicas
//            F1 F3 B1 B3
//   stage 1  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
#include <algorithm>

#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

// `lead` forwards first, then backwards and forwards in turn: never more than `lead` micro-batches in flight.
std::vector<Action> forwards_ahead(const Share& share, int lead) {
  std::vector<Action> order;
  const int count = share.count();
  order.reserve(2 * size_t(count));
  const auto add = [&](Verb verb, int n) { order.push_back({verb, share.stage, share.microbatch(n)}); };
  for (int n = 0; n < lead; ++n) add(Verb::forward, n);
  for (int n = 0; n < count; ++n) {
    add(Verb::backward, n);
    if (n + lead < count) add(Verb::forward, n + lead);
  }
  return order;
}

std::vector<Action> forwards(const Share& share) {
  std::vector<Action> order;
  for (int n = 0; n < share.count(); ++n) order.push_back({Verb::forward, share.stage, share.microbatch(n)});
  return order;
}

// Enough to keep every later device busy until the first gradient is back. The replicas of a stage together
// begin at least as many micro-batches as there are devices left: one each more than all the next stage may
// ask for, so that nobody waits for ever.
int warm_up(const Share& share) {
  return std::min(share.count(), (share.devices_left + share.replicas - 1) / share.replicas);
}

}  // namespace

std::vector<Action> compute_order(Policy policy, const Share& share) {
  switch (policy) {
    // Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, made
    // synchronous by a flush: "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021.
    case Policy::one_f_one_b:
      return forwards_ahead(share, warm_up(share));
    // Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS
    // 2019, but with the backwards ascending.
    case Policy::gpipe:
      return forwards_ahead(share, share.count());
    case Policy::forward_only:
      break;
  }
  return forwards(share);
}

}  // namespace antichain
