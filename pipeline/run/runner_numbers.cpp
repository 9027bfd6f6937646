// How a rank notices numbers that are not finite, and finds where they came from.
//
// Noticing is cheap: after each forward the loss, the statistics and what is sent on; after each backward
// what is sent back and the gradients of vectors (every layer has one, and a gradient that is spoilt spoils
// them); before the update all gradients. Only what does not depend on the cut makes a step bad: loss,
// statistics, gradients of weights.
//
// Finding is exact: the micro-batch runs again, right away, while all that it read is still there, and each
// node's results are looked at in turn. Nothing of the step changes: outputs and sums are written again with
// the same bits, gradients of weights go elsewhere.
//
// All this is for host memory. A device is looked at without waiting for it, and read at the step's end:
// device_readings.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/run/finite.h"
#include "pipeline/run/runner.h"

namespace antichain {

bool StageRunner::finite(const std::vector<Tensor>& tensors) const {
  return std::ranges::all_of(tensors, [&](const Tensor& t) { return all_finite(context_, t); });
}

void StageRunner::look_at_forward(int m, const StepInput& input, const StepResult& result) {
  if (readings_) return readings_->look_at_forward(m);
  if (!judge_) return;
  bool bad = !std::isfinite(result.loss), spoilt = false;
  for (const auto& [id, rings] : memory_.statistics)
    for (const Ring& ring : rings) bad = bad || !all_finite(context_, ring[m]);
  for (const NodeId id : sent_) spoilt = spoilt || !all_finite(context_, memory_.output.at(id)[m]);
  numbers_.bad = numbers_.bad || bad;
  if ((!bad && !spoilt) || located_forward_) return;
  StepResult again;
  locating_ = located_forward_ = true;
  forward(m, input, again);
  locating_ = false;
}

void StageRunner::look_at_backward(int m, Verb half, const StepInput& input) {
  if (readings_) return readings_->look_at_backward(m, half);
  if (!judge_ || located_backward_) return;
  bool spoilt = false;
  for (const auto& [message, ring] : memory_.sent)
    if (half != Verb::backward_weight) spoilt = spoilt || !all_finite(context_, ring[m]);
  for (const NodeId id : stage_.nodes())
    for (const Tensor& dw : stage_[id].gradients)
      if (dw.shape().rank() <= 1) spoilt = spoilt || !all_finite(context_, dw);
  if (!spoilt) return;
  locating_ = located_backward_ = true;
  backward(m, half, input);
  locating_ = false;
}

// Of what nobody could place, the last node's: backward comes to it first.
void StageRunner::look_at_gradients() {
  if (readings_) return readings_->look_at_gradients();
  for (const NodeId id : stage_.nodes()) {
    const std::vector<Tensor>& gradients = stage_[id].gradients;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (all_finite(context_, gradients[i])) continue;
      numbers_.bad = true;
      numbers_.note({.phase = Offence::Phase::update,
                     .node = id,
                     .what = Offence::What::weight_gradient,
                     .index = int(i),
                     .rank = transport_.rank()});
    }
  }
}

void StageRunner::note_output(NodeId id, int m) {
  const NodeState& state = stage_[id];
  Offence offence{.microbatch = m, .node = id, .rank = transport_.rank()};
  const auto statistics = memory_.statistics.find(id);
  const bool output_finite = all_finite(context_, memory_.output.at(id)[m]);
  const bool statistics_finite = statistics == memory_.statistics.end() ||
                                 std::ranges::all_of(statistics->second, [&](const Ring& ring) {
                                   return all_finite(context_, ring[m]);
                                 });
  if (output_finite && statistics_finite) return;
  offence.what = output_finite ? Offence::What::statistics : Offence::What::output;
  for (size_t i = state.params.size(); i-- > 0;) {
    if (all_finite(context_, state.params[i])) continue;
    offence.what = Offence::What::parameter;
    offence.index = int(i);
  }
  numbers_.note(offence);
}

void StageRunner::note_gradients(NodeId id, int m, const std::vector<Tensor>& dx,
                                 std::span<const Tensor> dw) {
  const auto note = [&](Offence::What what, size_t index) {
    numbers_.note({.microbatch = m,
                   .phase = Offence::Phase::backward,
                   .node = id,
                   .what = what,
                   .index = int(index),
                   .rank = transport_.rank()});
  };
  for (size_t i = 0; i < dw.size(); ++i)
    if (!all_finite(context_, dw[i])) note(Offence::What::weight_gradient, i);
  for (size_t i = 0; i < dx.size(); ++i)
    if (dx[i] && !finite({dx[i], memory_.contributions.at(id)[i].sum[m]}))
      note(Offence::What::input_gradient, i);
}

void StageRunner::poison(NodeId id, int m, bool gradient, const Tensor& tensor) const {
  if (poison_->gradient != gradient || poison_->microbatch != m || poison_->node != graph_[id].name) return;
  const Tensor host = Tensor::host(tensor.spec());
  context_.backend().copy(context_, tensor, host);
  const float nan = std::numeric_limits<float>::quiet_NaN();  // one a ReLU might swallow
  if (host.dtype() == DType::bf16)
    std::fill_n(host.data<Bf16>(), host.elements(), Bf16(nan));
  else
    std::fill_n(host.data<float>(), host.elements(), nan);
  context_.backend().copy(context_, host, tensor);
}

}  // namespace antichain
