// The runner's calls of kernels: a forward takes the stage's nodes in order, a backward in reverse, an update
// in order again.
#include <algorithm>

#include "pipeline/host/seconds.h"
#include "pipeline/run/runner.h"
#include "pipeline/run/weighted_loss.h"

namespace antichain {
namespace {

// A node's tensors of one micro-batch; empty ones where the step keeps none of them.
std::vector<Tensor> at(const std::map<NodeId, std::vector<Ring>>& rings, NodeId id, int microbatch,
                       size_t count) {
  std::vector<Tensor> tensors(count);
  if (auto it = rings.find(id); it != rings.end())
    for (size_t i = 0; i < count; ++i) tensors[i] = it->second[i][microbatch];
  return tensors;
}

}  // namespace

template <class Work>
void StageRunner::timed(NodeId id, Verb verb, int microbatch, const Work& work) {
  if (!clock_) return work();
  if (node_stamps_) return node_stamps_->around(id, verb, microbatch, work);
  const double start = now_s();
  work();
  clock_(id, verb, microbatch, now_s() - start);
}

DropoutKey StageRunner::dropout_key(const StepInput& input, int m) const {
  return {input.seed, input.step, uint64_t(m) * uint64_t(graph_.microbatch()),
          device_ ? device_->numbers() : nullptr};
}

void StageRunner::forward(int m, const StepInput& input, StepResult& result) {
  for (NodeId id : stage_.nodes()) {
    const Node& node = graph_[id];
    NodeState& state = stage_[id];
    std::vector<Tensor> x;
    for (NodeId i : node.inputs) x.push_back(memory_.output.at(i)[m]);
    const auto stash = at(memory_.stash, id, m, node.lowering.stash.size());
    const auto statistics = at(memory_.statistics, id, m, node.signature.statistics.size());
    const Tensor& y = memory_.output.at(id)[m];
    timed(id, Verb::forward, m, [&] {
      state.kernel->forward(context_, {.x = x,
                                       .params = state.params,
                                       .prepared = state.prepared,
                                       .buffers = state.buffers,
                                       .y = y,
                                       .stash = stash,
                                       .statistics = statistics,
                                       .mode = mode_,
                                       .dropout = dropout_key(input, m)});
    });
    if (poison_) poison(id, m, false, y);
    if (locating_) note_output(id, m);
    if (watch_ && !locating_) watch_(id, m, y);
    if (node.role() == Role::loss && readings_)
      stamped(id, Verb::forward, m, [&] { readings_->copy_loss(id, m, y); });
    if (node.role() == Role::loss && !readings_)  // N x 2: loss and hit of each sample
      for (int64_t n = 0; n < y.shape()[0]; ++n) {
        result.loss += weighted_loss(node, y.data<float>()[2 * n]);
        result.correct += y.data<float>()[2 * n + 1];
      }
    progress_between_nodes();
  }
}

void StageRunner::backward(int m, Verb half, const StepInput& input) {
  const bool input_half = half != Verb::backward_weight, weight_half = half != Verb::backward_input;
  for (auto id = stage_.nodes().rbegin(); id != stage_.nodes().rend(); ++id) {
    if (graph_.needs_gradient(*id) || graph_[*id].role() == Role::loss)
      backward_node(*id, m, input_half, weight_half, input);
    progress_between_nodes();
  }
}

void StageRunner::backward_node(NodeId id, int m, bool input_half, bool weight_half, const StepInput& input) {
  const Node& node = graph_[id];
  NodeState& state = stage_[id];
  if (state.kernel->inseparable()) weight_half = input_half;
  if (node.signature.params.empty()) weight_half = false;

  std::vector<Tensor> x(node.inputs.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (node.lowering.keeps(i)) x[i] = memory_.output.at(node.inputs[i])[m];
  const auto stash = at(memory_.stash, id, m, node.lowering.stash.size());
  const auto statistics = at(memory_.statistics, id, m, node.signature.statistics.size());
  Backward call{.x = x,
                .params = state.params,
                .prepared = state.prepared,
                .stash = stash,
                .statistics = statistics,
                .into = m == share_.first ? Into::overwrite : Into::accumulate,
                .loss_scale = float(node.signature.loss_weight / input.batch),
                .dropout = dropout_key(input, m)};
  if (node.lowering.keeps_y) call.y = memory_.output.at(id)[m];
  if (node.role() != Role::loss) call.dy = output_gradient(id, m, input_half);

  std::vector<Tensor> apart_dw;  // the second run of a micro-batch leaves no trace
  if (locating_ && weight_half) {
    for (const Tensor& t : state.gradients) apart_dw.push_back(context_.backend().tensor(t.spec()));
    call.into = Into::overwrite;
  }
  backward_halves(id, m, call, apart_dw.empty() ? state.gradients : apart_dw, input_half, weight_half);
}

// Both halves by one call of the kernel where it may be: not while they are timed, which wants each by
// itself.
void StageRunner::backward_halves(NodeId id, int m, Backward& call, std::span<const Tensor> dw,
                                  bool input_half, bool weight_half) {
  const Kernel& kernel = *stage_[id].kernel;
  std::vector<Tensor> dx;
  if (input_half) dx = begin_folds(id, m);
  std::vector<Into> dx_into;
  for (const Contribution& c : memory_.contributions.at(id)) dx_into.push_back(c.into());
  const bool wants_dx = std::ranges::any_of(dx, [](const Tensor& t) { return bool(t); });
  const bool apart = clock_ && wants_dx && weight_half && !kernel.inseparable();
  if (wants_dx || (input_half && kernel.inseparable())) {
    call.dx = dx;
    call.dx_into = dx_into;
    if (weight_half && !apart) call.dw = dw;
    timed(id, Verb::backward_input, m, [&] { kernel.backward(context_, call); });
    if (poison_ && dx[0]) poison(id, m, true, dx[0]);
    stamped(id, Verb::backward_input, m, [&] { end_folds(id, m, dx); });
  }
  if (weight_half && call.dw.empty()) {
    call.dx = {};
    call.dw = dw;
    timed(id, Verb::backward_weight, m, [&] { kernel.backward(context_, call); });
  }
  if (locating_) note_gradients(id, m, dx, call.dw);
}

void StageRunner::update(const StepInput& input) {
  const Rate rate = device_ ? Rate(device_->numbers()) : Rate(input.rate);
  const bool at_once = device_ && !clock_;
  for (NodeId id : stage_.nodes()) {
    NodeState& state = stage_[id];
    const size_t count = graph_[id].signature.statistics.size();
    std::vector<std::vector<Tensor>> statistics;
    for (int m = 0; count > 0 && m < schedule_.microbatches; ++m)
      statistics.push_back(at(memory_.statistics, id, m, count));
    if (count > 0)
      stamped(id, Verb::update, 0, [&] { state.kernel->absorb(context_, statistics, state.buffers); });
    if (graph_.needs_gradient(id) && !at_once)
      timed(id, Verb::update, 0, [&] { stage_.update(id, input.sgd, rate); });
    progress_between_nodes();
  }
  if (at_once) stage_.update(input.sgd, rate);
}

}  // namespace antichain
