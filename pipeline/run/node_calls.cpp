#include "pipeline/run/node_calls.h"

#include <algorithm>
#include <cmath>

#include "framework/backend.h"

namespace antichain {

NodeCalls::NodeCalls(RankModel& model, std::vector<NodeId> nodes, const StageMemory& memory, const Seat& seat,
                     Mode mode, StepDevice& device, int delay)
    : model_(model),
      nodes_(std::move(nodes)),
      graph_(model.graph()),
      context_(model.context()),
      memory_(memory),
      seat_(seat),
      mode_(mode),
      device_(device),
      delay_(delay),
      whole_(context_, memory, memory.tensors().whole, device),
      parted_(context_, memory, memory.tensors().parted, device) {
  if (mode != Mode::train || !device.updates_at_once()) return;
  at_once_ = model.make_update(nodes_);
  std::vector<Absorbed> all;
  for (const NodeId id : nodes_) {
    if (graph_[id].signature.statistics.empty()) continue;
    all.push_back({model[id].kernel.get(), statistics_of(id, 0), model[id].buffers});
    absorb_[id] = context_.backend().make_absorption(context_, {all.back()});
  }
  absorb_at_once_ = context_.backend().make_absorption(context_, std::move(all));
}

std::vector<std::vector<Tensor>> NodeCalls::statistics_of(NodeId id, int step) const {
  std::vector<std::vector<Tensor>> all;
  const int count = seat_.microbatches_of_step();
  for (int m = 0; m < count; ++m) all.push_back(memory_.statistics(id, step * count + m));
  return all;
}

void NodeCalls::begin_steps(std::span<const StepInput> inputs, NodeTimer& timer, const Spoil& spoil) {
  inputs_ = inputs;
  timer_ = &timer;
  spoil_ = &spoil;
  again_ = false;
}

DropoutKey NodeCalls::dropout_key(int m) const {
  const StepInput& input = input_of(m);
  const auto of_step = uint64_t(m % seat_.microbatches_of_step());
  return {input.seed, input.step, of_step * uint64_t(graph_.microbatch()), device_.numbers()};
}

void NodeCalls::forward(int m, const WeightVersion& version, NodeObserver& observer) {
  weights_ = version;
  for (NodeId id : nodes_) {
    const Node& node = graph_[id];
    std::vector<Tensor> x;
    for (NodeId i : node.inputs) x.push_back(memory_.output(i, m));
    const Tensor& y = memory_.output(id, m);
    call_forward(id, m, x, {y, memory_.stash(id, m), memory_.statistics(id, m)}, Verb::forward);
    spoil_->apply(context_, node, m, false, y);
    observer.after_forward(id, m, y);
    device_.between_nodes();
  }
}

void NodeCalls::call_forward(NodeId id, int m, std::span<const Tensor> x, const Results& to, Verb verb) {
  const NodeState& state = model_[id];
  const NodeWeights& weights = state.weights(weights_);
  timer_->around(id, verb, m, [&] {
    state.kernel->forward(context_, {.x = x,
                                     .params = weights.params,
                                     .prepared = weights.prepared,
                                     .buffers = weights.buffers,
                                     .y = to.y,
                                     .stash = to.stash,
                                     .statistics = to.statistics,
                                     .mode = mode_,
                                     .dropout = dropout_key(m)});
  });
}

// Runs a forward again, to the same bits.
void NodeCalls::recompute(NodeId id, int m, const BackwardTensors& form, Verb verb) {
  std::vector<Tensor> x;
  for (NodeId i : graph_[id].inputs) x.push_back(memory_.output(form, i, m));
  call_forward(
      id, m, x,
      {memory_.output(form, id, m), memory_.stash(form, id, m), memory_.statistics_again(form, id, m)}, verb);
  spoil_->apply(context_, graph_[id], m, false, memory_.output(form, id, m));
  device_.between_nodes();
}

void NodeCalls::backward(int m, Verb half, const WeightVersion& version, NodeObserver& observer, int first,
                         int end) {
  weights_ = version;
  const Halves halves{half != Verb::backward_weight, half != Verb::backward_input};
  GradientFolds& folds = half == Verb::backward ? whole_ : parted_;
  const BackwardTensors& form = memory_.tensors().backward(half);
  for (int i = end - 1; i >= first; --i) {
    const NodeId id = nodes_[size_t(i)];
    if (const auto again = form.again.find(id); halves.input && again != form.again.end())
      for (const int n : again->second) recompute(n, m, form, half);
    if (graph_.has_backward(id)) backward_node(id, m, halves, form, folds, observer);
    device_.between_nodes();
  }
}

void NodeCalls::backward_again(int m, Verb half, NodeObserver& observer) {
  again_ = true;
  backward(m, half, weights_, observer, 0, nodes());
  again_ = false;
}

void NodeCalls::backward_node(NodeId id, int m, Halves halves, const BackwardTensors& form,
                              GradientFolds& folds, NodeObserver& observer) {
  const Node& node = graph_[id];
  NodeState& state = model_[id];
  if (state.kernel->inseparable()) halves.weight = halves.input;
  if (!trains(node)) halves.weight = false;

  std::vector<Tensor> x(node.inputs.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (node.lowering.keeps(i)) x[i] = memory_.output(form, node.inputs[i], m);
  const auto stash = memory_.stash(form, id, m), statistics = memory_.statistics(id, m);
  Backward call{
      .x = x,
      .params = state.weights(weights_).params,
      .prepared = state.weights(weights_).prepared,
      .stash = stash,
      .statistics = statistics,
      .into = m % seat_.microbatches_of_step() == seat_.replica ? Into::overwrite : Into::accumulate,
      .loss_scale = float(input_of(m).loss_weight(graph_, id) / input_of(m).batch),
      .dropout = dropout_key(m)};
  // A backward that does not read its forward's weights comes right before the update of its own step.
  if (weights_.behind == 0 && !state.older.empty()) call.forward_params = state.older.back().params;
  if (node.lowering.keeps_y) call.y = memory_.output(form, id, m);
  if (node.role() != Role::loss) {
    call.dy = folds.output_gradient(id, m, halves.input);
    call.dy_term = folds.output_term(id, m);
  }

  std::vector<Tensor> elsewhere;
  if (again_ && halves.weight) {
    for (const Tensor& t : state.gradients)
      elsewhere.push_back(t ? context_.backend().tensor(t.spec()) : Tensor());
    call.into = Into::overwrite;
  }
  call_halves(id, m, call, elsewhere.empty() ? state.gradients : elsewhere, halves, folds, observer);
}

// One call of the kernel computes both halves, unless the timer wants each by itself.
void NodeCalls::call_halves(NodeId id, int m, Backward& call, std::span<const Tensor> dw, Halves halves,
                            GradientFolds& folds, NodeObserver& observer) {
  const Kernel& kernel = *model_[id].kernel;
  std::vector<Tensor> dx;
  if (halves.input) dx = folds.begin(id, m);
  const std::vector<Into> dx_into = folds.into(id);
  const bool wants_dx = std::ranges::any_of(dx, [](const Tensor& t) { return bool(t); });
  const bool apart = timer_->parts_backwards() && wants_dx && halves.weight && !kernel.inseparable();
  if (wants_dx || (halves.input && kernel.inseparable())) {
    call.dx = dx;
    call.dx_into = dx_into;
    if (halves.weight && !apart) call.dw = dw;
    const bool whole = !call.dw.empty() && !kernel.inseparable();
    const Verb verb = whole ? Verb::backward : Verb::backward_input;
    timer_->around(id, verb, m, [&] { kernel.backward(context_, call); });
    spoil_->apply(context_, graph_[id], m, true, dx[0]);
    timer_->around(id, verb, m, [&] { folds.end(id, m, dx); });
  }
  if (halves.weight && call.dw.empty()) {
    call.dx = {};
    call.dw = dw;
    timer_->around(id, Verb::backward_weight, m, [&] { kernel.backward(context_, call); });
  }
  observer.after_backward(id, m, dx, call.dw);
}

void NodeCalls::update(int step) {
  const StepInput& input = inputs_[size_t(step)];
  const Rate given = device_.numbers() ? Rate(device_.numbers()) : Rate(input.rate, input.step);
  const Rate rate = given.times(float(std::pow(std::max(1, delay_), -input.delay_power)));
  const bool at_once = at_once_ && !timer_->listens();
  for (NodeId id : nodes_) {
    if (!graph_[id].signature.statistics.empty() && !(at_once && absorb_at_once_))
      timer_->around(id, Verb::update, 0, [&] { absorb(id, step); });
    if (trains(graph_[id]) && !at_once) timer_->around(id, Verb::update, 0, [&] { model_.update(id, rate); });
    device_.between_nodes();
  }
  if (at_once && absorb_at_once_) absorb_at_once_->run(context_);
  if (at_once) model_.update(nodes_, *at_once_, rate);
  model_.predict(nodes_, rate);
  if (input.synchronous) model_.forget_older(nodes_);
}

void NodeCalls::absorb(NodeId id, int step) {
  if (const auto own = absorb_.find(id); own != absorb_.end() && own->second)
    own->second->run(context_);
  else
    model_[id].kernel->absorb(context_, statistics_of(id, step), model_[id].buffers);
}

}  // namespace antichain
