#include "pipeline/stage/rank_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/averaged.h"
#include "framework/error.h"
#include "framework/update_scratch.h"
#include "framework/weight_decay.h"

namespace antichain {

RankModel::RankModel(const Graph& lowered, std::vector<NodeId> nodes, Context& context, uint64_t seed,
                     std::shared_ptr<const Optimiser> optimiser, Shards shards, const KeptVersions& versions)
    : graph_(lowered), context_(context), optimiser_(std::move(optimiser)), shards_(std::move(shards)) {
  if (!versions.older.empty() && shards_.of_state())
    throw Error(
        "the plan shards the optimiser, and the schedule trains with older weights, of which each "
        "replica would have a part",
        "plan with --shard-optimiser off", ExitCode::usage);
  own(std::move(nodes), [&](const Node& node, const ParamSpec& param, Layout layout) {
    return draw(node, param, layout, seed);
  });
  for (const auto& [id, count] : versions.older) add_versions(id, count, versions.predict);
  begin_run();
  prepare();
}

void RankModel::own(std::vector<NodeId> nodes) {
  own(std::move(nodes), [&](const Node&, const ParamSpec& param, Layout layout) {
    return context_.backend().tensor({param.shape, param.dtype, layout});
  });
}

void RankModel::own(std::vector<NodeId> nodes, const FirstValue& first_value) {
  nodes_ = std::move(nodes);
  std::map<NodeId, NodeState> had = std::exchange(state_, {});
  sharers_.clear();
  of_nodes_.clear();
  int64_t gradient_begin = 0;
  for (const NodeId id : nodes_) {
    const Node& node = graph_[id];
    NodeState& state = state_[id];
    if (auto before = had.extract(id))
      state = std::move(before.mapped());
    else
      state = make(node, first_value);
    state.shares.clear(), state.again.clear(), state.gradients.clear();
    for (size_t i = 0; i < node.signature.params.size(); ++i) {
      const ParamSpec& param = node.signature.params[i];
      const ByteRange gradient{gradient_begin, node.param(i).bytes()};
      state.shares.push_back(param.trained ? shards_.of_weight(gradient) : std::vector<Share>());
      if (param.trained) gradient_begin += part_room(gradient.bytes);
      const std::optional<ParamUse> first = use_of({id, int(i)});
      state.again.push_back(first && *first != ParamUse{id, int(i)});
      if (state.again.back()) {
        const NodeState& its = state_.at(first->node);
        state.params[i] = its.params[size_t(first->param)];
        state.slots[i] = its.slots[size_t(first->param)];
        if (auto& others = sharers_[first->node]; others.empty() || others.back() != id) others.push_back(id);
      } else if (!state.params[i]) {
        state.params[i] = first_value(node, param, node.lowering.params[i]);
        const ByteRange own = own_part({id, int(i)});
        for (size_t n = own.bytes == 0 ? 0 : slots_of(*optimiser_, param).size(); n > 0; --n)
          state.slots[i].push_back(context_.backend().tensor(part(state.params[i], own).spec()));
      }
    }
  }
  lay_out_gradients();
}

// Returns the node's kernel and buffers, and room for its parameters.
NodeState RankModel::make(const Node& node, const FirstValue& first_value) {
  const Backend& backend = context_.backend();
  context_.workspace(std::max(node.lowering.workspace_bytes,
                              update_scratch_bytes(*optimiser_, node)));  // now, not in the first step
  std::vector<TensorSpec> x;
  for (const NodeId input : node.inputs) x.push_back(graph_[input].output());
  NodeState state;
  state.kernel = backend.entry(node.op->type()).make(*node.op, x, node.lowering);
  state.params.resize(node.signature.params.size());
  state.slots.resize(node.signature.params.size());
  for (const ParamSpec& buffer : node.signature.buffers)
    state.buffers.push_back(first_value(node, buffer, Layout::plain));
  for (const TensorSpec& spec : node.lowering.prepared) state.prepared.push_back(backend.tensor(spec));
  return state;
}

// What is not trained is the same in all versions.
NodeWeights RankModel::room_for_weights(NodeId id) const {
  const NodeState& state = state_.at(id);
  const auto room = [&](const Tensor& t) { return context_.backend().tensor(t.spec()); };
  NodeWeights made;
  for (size_t i = 0; i < state.params.size(); ++i)
    made.params.push_back(state.gradients[i] ? room(state.params[i]) : state.params[i]);
  std::ranges::transform(state.buffers, std::back_inserter(made.buffers), room);
  std::ranges::transform(state.prepared, std::back_inserter(made.prepared), room);
  return made;
}

void RankModel::add_versions(NodeId id, int older, const PredictionMethod* predict) {
  NodeState& state = state_.at(id);
  if (state.buffers.empty() && !trains(graph_[id])) return;
  for (int k = 0; k < older; ++k) state.older.push_back(room_for_weights(id));
  if (!predict) return;
  state.ahead = room_for_weights(id);
  const std::shared_ptr<const Optimiser> pass = prediction_of(optimiser_, *predict, older);
  std::vector<Trained> all;
  for (size_t i = 0; i < state.params.size(); ++i) {
    if (!state.gradients[i]) continue;
    const ParamSpec& spec = graph_[id].signature.params[i];
    std::vector<Tensor> slots = state.slots[i];
    slots.resize(slots_of(*pass, spec).size());  // without the average's
    all.push_back(
        {state.ahead->params[i], state.params[i], std::move(slots), {}, full_name(graph_[id], spec)});
  }
  state.predict = context_.backend().make_update(pass, context_, std::move(all));
}

void RankModel::copy_weights(const NodeWeights& from, const NodeWeights& to) const {
  const auto copy = [&](const std::vector<Tensor>& of, const std::vector<Tensor>& into) {
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i].raw() != into[i].raw()) context_.backend().copy(context_, of[i], into[i]);
  };
  copy(from.params, to.params);
  copy(from.buffers, to.buffers);
  copy(from.prepared, to.prepared);
}

void RankModel::keep_weights() {
  for (auto& [id, state] : state_) {
    if (state.older.empty()) continue;
    std::rotate(state.older.begin(), state.older.end() - 1, state.older.end());
    copy_weights(state.weights({.behind = 0, .ahead = 1}), state.older.front());
  }
}

void RankModel::predict(const std::vector<NodeId>& nodes, const Rate& rate) {
  for (const NodeId id : nodes) {
    NodeState& state = state_.at(id);
    if (!state.ahead) continue;
    copy_weights(state, *state.ahead);
    state.predict->run(context_, rate);
    if (!state.prepared.empty()) state.kernel->prepare(context_, state.ahead->params, state.ahead->prepared);
  }
}

std::optional<ParamUse> RankModel::use_of(const ParamUse& use) const {
  const Node& node = graph_[use.node];
  const auto shared = graph_.shared().find(full_name(node, node.signature.params[size_t(use.param)]));
  if (shared == graph_.shared().end()) return owns(use.node) ? std::optional(use) : std::nullopt;
  for (const ParamUse& other : shared->second)
    if (owns(other.node)) return other;
  return std::nullopt;
}

Tensor RankModel::part(const Tensor& whole, const ByteRange& share) {
  if (share.bytes == whole.bytes()) return whole;
  const int64_t count = share.bytes / size_of(whole.dtype());
  return part_of(whole, share.begin_bytes,
                 {is_matrix(whole.shape()) ? Shape{1, count} : Shape{count}, whole.dtype()});
}

ByteRange RankModel::own_part(const ParamUse& use) const {
  const NodeState& state = state_.at(use.node);
  const std::vector<Share>& shares = state.shares[size_t(use.param)];
  if (shares.empty()) return {0, state.params[size_t(use.param)].bytes()};
  const auto own = std::ranges::find(shares, shards_.own, &Share::owner);
  return own == shares.end() ? ByteRange() : own->of;
}

void RankModel::for_each_trained(const TrainedVisitor& f) const {
  for (const auto& [id, state] : state_)
    for (size_t i = 0; i < state.params.size(); ++i)
      if (state.gradients[i] && !state.again[i])
        f({id, int(i)}, full_name(graph_[id], graph_[id].signature.params[i]), state.shares[i]);
}

void RankModel::lay_out_gradients() {
  int64_t bytes = 0;
  for (const NodeId id : nodes_)
    for (size_t i = 0; i < graph_[id].signature.params.size(); ++i)
      if (graph_[id].signature.params[i].trained) bytes += part_room(graph_[id].param(i).bytes());
  gradients_ = context_.backend().tensor({{bytes / int64_t(sizeof(float))}});
  int64_t begin = 0;
  for (auto& [id, state] : state_)
    for (size_t i = 0; i < state.params.size(); ++i) {
      Tensor& gradient = state.gradients.emplace_back();
      if (!graph_[id].signature.params[i].trained) continue;
      const Tensor& param = state.params[i];
      ANTICHAIN_CHECK(param.dtype() == DType::f32, "gradients are added up in float32");
      gradient = part_of(gradients_, begin, param.spec());
      begin += part_room(param.bytes());
    }
  ANTICHAIN_CHECK(begin == bytes, "every parameter has its part");
}

std::vector<Trained> RankModel::trained(NodeId id) const {
  const NodeState& state = state_.at(id);
  std::vector<Trained> all;
  for (size_t i = 0; graph_.needs_gradient(id) && i < state.params.size(); ++i) {
    if (!state.gradients[i] || state.again[i]) continue;
    const ByteRange own = own_part({id, int(i)});
    if (own.bytes == 0) continue;
    const std::string name = full_name(graph_[id], graph_[id].signature.params[i]);
    all.push_back({part(state.params[i], own), part(state.gradients[i], own), state.slots[i], {}, name});
    if (!shards_.of_state() && graph_[id].lowering.prepared_rounded && i < state.prepared.size())
      all.back().rounded = state.prepared[i];
  }
  return all;
}

std::unique_ptr<Update> RankModel::make_update(const std::vector<NodeId>& nodes) const {
  std::vector<Trained> all;
  for (const NodeId id : nodes) std::ranges::copy(trained(id), std::back_inserter(all));
  return context_.backend().make_update(optimiser_, context_, std::move(all));
}

void RankModel::forget_older(const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    const NodeState& state = state_.at(id);
    for (const NodeWeights& older : state.older) copy_weights(state, older);
    if (state.ahead) copy_weights(state, *state.ahead);
  }
}

void RankModel::begin_run() {
  forget_older(nodes_);
  if (!averaged(*optimiser_)) return;
  for (const auto& [id, state] : state_)
    for (size_t i = 0; i < state.params.size(); ++i)
      if (!state.slots[i].empty() && !state.again[i])
        context_.backend().copy(context_, part(state.params[i], own_part({id, int(i)})),
                                state.slots[i].back());
}

bool RankModel::swap_averages() {
  if (!averaged(*optimiser_)) return false;
  for (const auto& [id, state] : state_)
    for (size_t i = 0; i < state.params.size(); ++i) {
      if (state.slots[i].empty() || state.again[i]) continue;
      const Tensor weights = part(state.params[i], own_part({id, int(i)})), averages = state.slots[i].back();
      const Tensor aside = context_.backend().tensor(weights.spec());
      context_.backend().copy(context_, weights, aside);
      context_.backend().copy(context_, averages, weights);
      context_.backend().copy(context_, aside, averages);
    }
  if (!shards_.of_state()) prepare();
  return true;
}

void RankModel::prepare() {
  for (auto& [id, state] : state_) {
    prepare(state);
    if (state.prepared.empty()) continue;
    for (const NodeWeights& older : state.older)
      state.kernel->prepare(context_, older.params, older.prepared);
    if (state.ahead) state.kernel->prepare(context_, state.ahead->params, state.ahead->prepared);
  }
}

void RankModel::prepare(NodeState& state) {
  if (!state.prepared.empty()) state.kernel->prepare(context_, state.params, state.prepared);
}

Tensor RankModel::draw(const Node& node, const ParamSpec& param, Layout layout, uint64_t seed) const {
  const Tensor plain = Tensor::host({param.shape, param.dtype});
  initialise(plain, param.init, seed, full_name(node, param));
  const Tensor host = layout == Layout::plain ? plain : Tensor::host({param.shape, param.dtype, layout});
  if (layout != Layout::plain) relayout(plain, host);
  const Tensor value = context_.backend().tensor(host.spec());
  context_.backend().copy(context_, host, value);
  return value;
}

void RankModel::update(NodeId id, const Rate& rate) {
  std::unique_ptr<Update>& update = of_nodes_[id];
  if (!update) update = make_update({id});
  update->run(context_, rate);
  prepare_after_update(id);
}

void RankModel::update(const std::vector<NodeId>& nodes, const Update& at_once, const Rate& rate) {
  at_once.run(context_, rate);
  for (const NodeId id : nodes)
    if (trains(graph_[id])) prepare_after_update(id);
}

// The update itself has written what is only rounded, of the node that it is for.
void RankModel::prepare_after_update(NodeId id) {
  if (shards_.of_state()) return;
  if (!graph_[id].lowering.prepared_rounded) prepare(state_.at(id));
  if (const auto sharers = sharers_.find(id); sharers != sharers_.end())
    for (const NodeId other : sharers->second) prepare(state_.at(other));
}

void RankModel::for_each_value(const std::function<void(const std::string&, const Tensor&)>& f) const {
  const auto visit = [&](const Node& node, const std::vector<ParamSpec>& specs,
                         const std::vector<Tensor>& tensors, const std::vector<bool>& again) {
    for (size_t i = 0; i < specs.size(); ++i) {
      if (i < again.size() && again[i]) continue;
      Tensor value = Tensor::host(tensors[i].spec());
      context_.backend().copy(context_, tensors[i], value);
      if (value.layout() != Layout::plain) {
        const Tensor plain = Tensor::host({specs[i].shape, specs[i].dtype});
        relayout(value, plain);
        value = plain;
      }
      f(full_name(node, specs[i]), value);
    }
  };
  for (const auto& [id, state] : state_) {
    visit(graph_[id], graph_[id].signature.params, state.params, state.again);
    visit(graph_[id], graph_[id].signature.buffers, state.buffers, {});
  }
}

}  // namespace antichain
