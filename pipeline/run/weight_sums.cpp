#include "pipeline/run/weight_sums.h"

#include "framework/backend.h"

namespace antichain {

// The sum is gathered where the fold before was received, else in the gradient of the first use to add, which
// the next step overwrites.
Tensor WeightSums::add_up(const WeightRun& run, NodeTimer& timer) {
  Context& context = model_.context();
  auto use = run.uses.begin();
  const Tensor sum = run.received == no_buffer ? gradient(*use++) : memory_.at(run.received, 0);
  for (; use != run.uses.end(); ++use)
    timer.around(use->node, Verb::update, 0, [&] { context.backend().add(context, gradient(*use), sum); });
  return sum;
}

void WeightSums::fold(BufferId sent, NodeTimer& timer) {
  for (const WeightFold& fold : program_.weight_folds)
    for (const WeightRun& run : fold.runs)
      if (run.sent == sent) {
        const Tensor sum = add_up(run, timer);
        timer.around(run.uses.back().node, Verb::update, 0, [&] { device_.copy(sum, memory_.at(sent, 0)); });
      }
}

void WeightSums::finish(NodeTimer& timer) {
  for (const WeightFold& fold : program_.weight_folds) {
    const WeightRun& last = fold.runs.back();
    // A replica that has nothing to send of what others want has not folded it yet.
    const bool mine = last.sent == no_buffer || begins(last.sent);
    const Tensor whole = fold.total != no_buffer ? memory_.at(fold.total, 0)
                         : mine                  ? add_up(last, timer)
                                                 : memory_.at(last.sent, 0);
    const Tensor& place = gradient(fold.first);
    if (whole.raw() != place.raw())
      timer.around(fold.first.node, Verb::update, 0, [&] { device_.copy(whole, place); });
  }
}

}  // namespace antichain
