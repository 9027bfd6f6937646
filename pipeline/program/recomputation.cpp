#include "pipeline/program/recomputation.h"

#include <algorithm>

#include "partition/plan/recompute.h"

namespace antichain {

BackwardOrder backward_order(const StepNetwork& network, const std::vector<int>& stage,
                             const std::vector<int>& position, const std::vector<std::vector<int>>& consumers,
                             const std::vector<int>& recomputed, int begin) {
  const int size = int(stage.size());
  BackwardOrder order{.again = std::vector<std::vector<int>>(stage.size()),
                      .again_at = std::vector<int>(stage.size(), -1),
                      .backward_at = std::vector<int>(stage.size())};
  // Later segments come first, because they may read earlier ones.
  std::vector<int> before(stage.size(), -1);  // the position before whose backward a node's segment runs
  const std::vector<Segment> all = segments(stage, recomputed);
  for (auto segment = all.rbegin(); segment != all.rend(); ++segment) {
    int at = segment->end - 1;
    for (int i = segment->first; i < segment->end; ++i)
      for (const int c : consumers[size_t(stage[size_t(i)])]) {
        const int p = position[size_t(c)];
        if (p < segment->end) continue;  // within the segment, or on another stage
        if (before[size_t(p)] >= 0) at = std::max(at, before[size_t(p)]);
        if (network[size_t(c)].has_backward && network[size_t(c)].rereads(stage[size_t(i)]))
          at = std::max(at, p);
      }
    for (int i = segment->first; i < segment->end; ++i) {
      before[size_t(i)] = at;
      order.again[size_t(at)].push_back(i);
    }
  }
  int now = begin;
  for (int i = size - 1; i >= 0; --i) {
    std::ranges::sort(order.again[size_t(i)]);
    for (const int again : order.again[size_t(i)]) order.again_at[size_t(again)] = now++;
    order.backward_at[size_t(i)] = now++;
  }
  order.end = now;
  return order;
}

}  // namespace antichain
