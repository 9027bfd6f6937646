#include "pipeline/run/host_numbers.h"

#include <cmath>
#include <utility>

#include "pipeline/run/finite.h"
#include "pipeline/run/node_calls.h"
#include "pipeline/run/weighted_loss.h"

namespace antichain {

class HostNumbers::Locator final : public NodeObserver {
 public:
  // The verb is that of the action that runs again.
  Locator(HostNumbers& numbers, const StageMemory& memory, Verb verb)
      : numbers_(numbers), memory_(memory), backward_(memory.tensors().backward(verb)) {}
  void after_forward(NodeId id, int m, const Tensor&) override { numbers_.check_output(memory_, id, m); }
  void after_backward(NodeId id, int m, std::span<const Tensor> dx, std::span<const Tensor> dw) override {
    numbers_.check_gradients(memory_, backward_, id, m, dx, dw);
  }

 private:
  HostNumbers& numbers_;
  const StageMemory& memory_;
  const BackwardTensors& backward_;
};

HostNumbers::HostNumbers(RankModel& model, WatchedRank rank)
    : model_(model), context_(model.context()), place_(std::move(rank)) {}

void HostNumbers::begin_steps(std::span<const StepInput> steps) {
  steps_.clear();
  for (const StepInput& input : steps) steps_.push_back({.input = input, .report = {}});
  finished_ = 0;
  forget();
  located_forward_ = located_backward_ = false;
}

void HostNumbers::add_loss(NodeId id, int m, const Tensor& y) {
  OfStep& step = of(m);
  const double weight = step.input.loss_weight(model_.graph(), id);
  const int64_t real = step.input.real_samples(m % place_.microbatches, y.shape()[0]);
  for (int64_t n = 0; n < real; ++n) {
    step.loss += weighted_loss(weight, y.data<float>()[2 * n]);
    if (id == model_.graph().size() - 1)
      step.correct += step.input.means.hit_weight * y.data<float>()[2 * n + 1];
  }
}

void HostNumbers::finish(StepResult& result) {
  const OfStep& step = steps_[finished_++];
  result.loss = step.loss;
  result.correct = step.correct;
  result.numbers = step.report;
  result.updated = updated_;
}

void HostNumbers::look_at_forward(int stage, int m) {
  const WatchedStage& own = place_.stages.at(stage);
  bool bad = !std::isfinite(of(m).loss), spoilt = false;
  for (const auto& [id, parts] : own.memory->tensors().statistics)
    bad = bad || !all_finite(context_, own.memory->statistics(id, m));
  for (const NodeId id : own.sent) spoilt = spoilt || !all_finite(context_, own.memory->output(id, m));
  of(m).report.bad = of(m).report.bad || bad;
  if ((!bad && !spoilt) || located_forward_) return;
  located_forward_ = true;
  Locator locator(*this, *own.memory, Verb::forward);
  own.calls->forward_again(m, locator);
}

void HostNumbers::look_at_backward(int stage, int m, Verb half) {
  if (located_backward_) return;
  const WatchedStage& own = place_.stages.at(stage);
  bool spoilt = false;
  for (const auto& [message, buffer] : own.memory->tensors().sent)
    if (half != Verb::backward_weight) spoilt = spoilt || !all_finite(context_, own.memory->at(buffer, m));
  for (const NodeId id : own.nodes)
    for (const Tensor& dw : model_[id].gradients)
      if (dw && dw.shape().rank() <= 1) spoilt = spoilt || !all_finite(context_, dw);
  if (!spoilt) return;
  located_backward_ = true;
  Locator locator(*this, *own.memory, half);
  own.calls->backward_again(m, half, locator);
}

// If nobody could place a bad gradient before, it is blamed on the last node, where backward begins.
void HostNumbers::look_at_gradients() {
  for (const NodeId id : model_.nodes()) {
    const std::vector<Tensor>& gradients = model_[id].gradients;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i] || all_finite(context_, gradients[i])) continue;
      NumberReport& report = steps_[size_t(updating())].report;
      report.bad = true;
      report.note({.phase = NonFinite::Phase::update,
                   .node = id,
                   .what = NonFinite::What::weight_gradient,
                   .index = int(i),
                   .rank = place_.rank});
    }
  }
}

void HostNumbers::check_output(const StageMemory& memory, NodeId id, int m) {
  const NodeState& state = model_[id];
  NonFinite found{.microbatch = m % place_.microbatches, .node = id, .rank = place_.rank};
  const bool output_finite = all_finite(context_, memory.output(id, m));
  if (output_finite && all_finite(context_, memory.statistics(id, m))) return;
  found.what = output_finite ? NonFinite::What::statistics : NonFinite::What::output;
  for (size_t i = state.params.size(); i-- > 0;) {
    if (all_finite(context_, state.params[i])) continue;
    found.what = NonFinite::What::parameter;
    found.index = int(i);
  }
  of(m).report.note(found);
}

void HostNumbers::check_gradients(const StageMemory& memory, const BackwardTensors& tensors, NodeId id, int m,
                                  std::span<const Tensor> dx, std::span<const Tensor> dw) {
  const auto note = [&](NonFinite::What what, size_t index) {
    of(m).report.note({.microbatch = m % place_.microbatches,
                       .phase = NonFinite::Phase::backward,
                       .node = id,
                       .what = what,
                       .index = int(index),
                       .rank = place_.rank});
  };
  for (size_t i = 0; i < dw.size(); ++i)
    if (dw[i] && !all_finite(context_, dw[i])) note(NonFinite::What::weight_gradient, i);
  for (size_t i = 0; i < dx.size(); ++i)
    if (dx[i] && (!all_finite(context_, dx[i]) ||
                  !all_finite(context_, memory.at(tensors.contributions.at(id)[i].sum, m))))
      note(NonFinite::What::input_gradient, i);
}

}  // namespace antichain
