#include "pipeline/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "framework/error.h"
#include "framework/random.h"
#include "pipeline/agree.h"
#include "pipeline/message_order.h"

namespace antichain {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Tensor> at(const std::map<NodeId, std::vector<Ring>>& rings, NodeId id, int microbatch,
                       size_t count) {
  std::vector<Tensor> tensors(count);
  if (auto it = rings.find(id); it != rings.end())
    for (size_t i = 0; i < count; ++i) tensors[i] = it->second[i][microbatch];
  return tensors;
}

// What it obeys: a schedule in which every stage is one rank's.
const Schedule& without_replicas(const Schedule& schedule, const Plan& plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (const size_t ranks = plan.stages[s].ranks.size(); ranks != 1)
      throw Error(
          fmt::format("stage {} of the plan has {} ranks, but the runner has one rank per stage", s, ranks),
          "plan without replicas");
  return schedule;
}

}  // namespace

StageRunner::StageRunner(Stage& stage, const Profile& network, const Plan& plan, const Schedule& schedule,
                         Mode mode, Transport& transport)
    : stage_(stage),
      graph_(stage.graph()),
      schedule_(without_replicas(schedule, plan)),
      mode_(mode),
      transport_(transport),
      context_(stage.context()),
      channels_(schedule),
      memory_(stage, network, plan, schedule, transport.rank(), mode) {
  std::map<int, std::string> names;
  for (const Action& a : schedule.ranks[size_t(transport.rank())]) {
    labels_.push_back(fmt::format("{} {}", print(a), describe(a)));
    if (a.verb == Verb::send) names[channels_(transport.rank(), a.peer, a.message)] = describe(a.message);
    if (a.verb == Verb::send && a.message.flow == Flow::activation) sent_.insert(a.message.tensor);
    if (a.verb != Verb::recv || a.microbatch != 0) continue;
    const Ring& ring = a.message.flow == Flow::activation ? memory_.output.at(a.message.tensor)
                                                          : memory_.received.at(a.message);
    const int channel = channels_(a.peer, transport.rank(), a.message);
    names[channel] = describe(a.message);
    receives_.push_back({.message = a.message,
                         .peer = a.peer,
                         .channel = channel,
                         .ring = &ring,
                         .tickets = std::vector<Transport::Ticket>(size_t(schedule.microbatches))});
  }
  names_ = std::make_shared<const std::map<int, std::string>>(std::move(names));
  if (transport.ordered()) agree_on_order(network, plan);
  if (!context_.backend().host_memory()) attach_device();
}

// Any cluster's times give a safe order; the profile's own link, which all ranks know, is near enough for a good one.
void StageRunner::agree_on_order(const Profile& network, const Plan& plan) {
  const auto order = issue_order(message_order(schedule_, plan, network, one_link(network.link)),
                                 int(schedule_.ranks.size()));
  std::string all;
  for (const auto& indices : order) all += fmt::format("{}\n", fmt::join(indices, " "));
  agree(transport_, "the order of messages", fmt::format("{:016x}", hash_bytes(all)));
  const int me = transport_.rank();
  for (const int index : order[size_t(me)]) {
    const Action& a = schedule_.ranks[size_t(me)][size_t(index)];
    const bool sends = a.verb == Verb::send;
    const int channel = sends ? channels_(me, a.peer, a.message) : channels_(a.peer, me, a.message);
    turns_.push_back({a.verb, {channel, a.microbatch}, a.peer});
  }
}

std::string StageRunner::describe(const Message& message) const {
  return fmt::format("{} of node {}", message.flow == Flow::activation ? "activation" : "gradient",
                     graph_[message.tensor].name);
}

std::string StageRunner::describe(const Action& a) const {
  switch (a.verb) {
    case Verb::load:
      return fmt::format("loading micro-batch {}", a.microbatch);
    case Verb::recv:
      return fmt::format("receiving the {}, micro-batch {}", describe(a.message), a.microbatch);
    case Verb::send:
      return fmt::format("sending the {}, micro-batch {}", describe(a.message), a.microbatch);
    case Verb::forward:
      return fmt::format("forward of micro-batch {}", a.microbatch);
    case Verb::backward:
      return fmt::format("backward of micro-batch {}", a.microbatch);
    case Verb::backward_input:
      return fmt::format("input gradients of micro-batch {}", a.microbatch);
    case Verb::backward_weight:
      return fmt::format("weight gradients of micro-batch {}", a.microbatch);
    case Verb::reduce:
      return "adding up the weight gradients of all replicas";
    case Verb::step:
      return "updating the weights";
  }
  return "";
}

StepResult StageRunner::run(const StepInput& input, BatchSource& source) {
  StepResult result;
  transport_.name_messages([names = names_](MessageKey key, int, int) {
    const auto it = names->find(key.channel);
    return fmt::format("{}, micro-batch {}", it == names->end() ? "a message" : it->second, key.microbatch);
  });
  numbers_ = {};
  located_forward_ = located_backward_ = false;
  poison_ = judge_ ? poison_for(transport_.rank(), int64_t(input.step)) : std::nullopt;
  for (Receive& r : receives_) r.posted = r.awaited = r.released = 0;
  if (feed_) feed_->begin_step(source);
  if (readings_) readings_->begin_step(judge_ != nullptr);  // allocates in the first: not amid messages
  transport_.begin_step(turns_);
  post_receives();
  times_.emplace(transport_.rank(), input.traced, device_.get(), sheet_);
  if (device_) begin_on_device(input);
  const auto& actions = schedule_.ranks[size_t(transport_.rank())];
  for (size_t i = 0; i < actions.size(); ++i) {
    transport_.activity().doing(labels_[i]);
    if (device_) device_->begin_range(print(actions[i]));
    times_->start(actions[i]);
    if (feed_ && actions[i].verb == Verb::step) feed_->end_step();
    execute(actions[i], input, source, result);
    if (node_stamps_) node_stamps_->let_go();
    times_->end();
    if (device_) {
      device_->end_range();
      transport_.progress();  // nothing did within the action
    }
    if (feed_ && !feed_->empty() && actions[i].verb == Verb::forward) {
      spend(Spent::data);
      feed_->load_ahead(source);
    }
  }
  if (feed_) feed_->load_next(source);
  transport_.activity().doing("delivering the last tensors of the step");
  spend(Spent::transfer);
  transport_.flush();
  if (device_) finish_on_device(result);
  if (node_stamps_) node_stamps_->finish();
  node_stamps_.reset();
  result.events = times_->finish();
  times_.reset();
  result.numbers = numbers_;
  return result;
}

void StageRunner::execute(const Action& action, const StepInput& input, BatchSource& source,
                          StepResult& result) {
  switch (action.verb) {
    case Verb::load:
      return load(action.microbatch, source);
    case Verb::recv:
      return wait(action);
    case Verb::forward:
      start(action, [&] {
        forward(action.microbatch, input, result);
        stamped(no_node, action.verb, action.microbatch,
                [&] { look_at_forward(action.microbatch, input, result); });
      });
      if (readings_) readings_->forward_started(action.microbatch);
      if (mode_ == Mode::evaluate) release(Flow::activation, action.microbatch);
      return;
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      start(action, [&] {
        backward(action.microbatch, action.verb, input);
        stamped(no_node, action.verb, action.microbatch,
                [&] { look_at_backward(action.microbatch, action.verb, input); });
      });
      if (action.verb != Verb::backward_weight) release(Flow::gradient, action.microbatch);
      if (action.verb != Verb::backward_input) release(Flow::activation, action.microbatch);
      return;
    case Verb::send:
      return send(action);
    case Verb::reduce:
      return check_failed("a reduce in a schedule to run", "the constructor refuses replicas");
    case Verb::step:
      return step(action, input, result);
  }
}

template <class Work>
void StageRunner::timed(NodeId id, Verb verb, int microbatch, const Work& work) {
  if (!clock_) return work();
  if (node_stamps_) return node_stamps_->around(id, verb, microbatch, work);
  const double start = now_s();
  work();
  clock_(id, verb, microbatch, now_s() - start);
}

// What is timed on devices only: in host memory it is among what an action takes besides its nodes.
template <class Work>
void StageRunner::stamped(NodeId id, Verb verb, int microbatch, const Work& work) {
  if (!node_stamps_) return work();
  node_stamps_->around(id, verb, microbatch, work);
}

void StageRunner::load(int microbatch, BatchSource& source) {
  if (feed_) return feed_->load(microbatch, source);
  for (const auto& [id, ring] : memory_.output)
    if (graph_[id].role() == Role::input) source.fill(graph_[id].name, microbatch, ring[microbatch]);
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
        result.loss += node.signature.loss_weight * y.data<float>()[2 * n];
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
                .into = m == 0 ? Into::overwrite : Into::accumulate,
                .loss_scale = float(node.signature.loss_weight / input.batch),
                .dropout = dropout_key(input, m)};
  if (node.lowering.keeps_y) call.y = memory_.output.at(id)[m];
  if (node.role() != Role::loss) call.dy = output_gradient(id, m, input_half);

  std::span<const Tensor> dw = state.gradients;
  std::vector<Tensor> apart_dw;  // the second run of a micro-batch leaves no trace
  if (locating_ && weight_half) {
    for (const Tensor& t : state.gradients) apart_dw.push_back(context_.backend().tensor(t.spec()));
    dw = apart_dw;
    call.into = Into::overwrite;
  }
  std::vector<Tensor> dx;
  if (input_half) dx = begin_folds(id, m);
  std::vector<Into> dx_into;
  for (const Contribution& c : memory_.contributions.at(id)) dx_into.push_back(c.into());
  const bool wants_dx = std::ranges::any_of(dx, [](const Tensor& t) { return bool(t); });
  const bool apart = clock_ && wants_dx && weight_half && !state.kernel->inseparable();
  if (wants_dx || (input_half && state.kernel->inseparable())) {
    call.dx = dx;
    call.dx_into = dx_into;
    if (weight_half && !apart) call.dw = dw;
    timed(id, Verb::backward_input, m, [&] { state.kernel->backward(context_, call); });
    if (poison_ && dx[0]) poison(id, m, true, dx[0]);
    stamped(id, Verb::backward_input, m, [&] { end_folds(id, m, dx); });
  }
  if (weight_half && call.dw.empty()) {
    call.dx = {};
    call.dw = dw;
    timed(id, Verb::backward_weight, m, [&] { state.kernel->backward(context_, call); });
  }
  if (locating_) note_gradients(id, m, dx, call.dw);
}

void StageRunner::send(const Action& a) {
  const Tensor& tensor = a.message.flow == Flow::activation
                             ? memory_.output.at(a.message.tensor)[a.microbatch]
                             : memory_.sent.at(a.message)[a.microbatch];
  transport_.send({channels_(transport_.rank(), a.peer, a.message), a.microbatch}, a.peer, tensor);
}

StageRunner::Receive& StageRunner::receive(const Action& a) {
  const auto it = std::ranges::find_if(
      receives_, [&](const Receive& r) { return r.message == a.message && r.peer == a.peer; });
  ANTICHAIN_CHECK(it != receives_.end(), "every channel receives micro-batch 0");
  return *it;
}

void StageRunner::wait(const Action& a) {
  Receive& r = receive(a);
  ANTICHAIN_CHECK(r.awaited == a.microbatch && r.posted > a.microbatch,
                  "receives are awaited in micro-batch order");
  transport_.wait(r.tickets[size_t(a.microbatch)]);
  ++r.awaited;
}

// A receive may be posted as soon as its buffer's previous micro-batch is used up.
void StageRunner::post_receives() {
  for (Receive& r : receives_)
    for (; r.posted < schedule_.microbatches && r.posted < r.released + r.ring->size(); ++r.posted)
      r.tickets[size_t(r.posted)] = transport_.recv({r.channel, r.posted}, r.peer, (*r.ring)[r.posted]);
}

void StageRunner::release(Flow flow, int microbatch) {
  for (Receive& r : receives_)
    if (r.message.flow == flow) r.released = microbatch + 1;
  post_receives();
}

void StageRunner::step(const Action& action, const StepInput& input, StepResult& result) {
  if (mode_ == Mode::evaluate) return;
  if (judge_) {
    look_at_gradients();
    if (!readings_ || judge_decides_) {
      spend(Spent::waiting);  // it may ask the others
      if (readings_) {
        transport_.flush();  // waits that name the peer go first
        readings_->read(result, numbers_);
      }
      if (!(result.updated = judge_(numbers_))) return;
      spend(Spent::update);
    }
  }
  start(action, [&] { update(input); });
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
      stamped(id, Verb::step, 0, [&] { state.kernel->absorb(context_, statistics, state.buffers); });
    if (graph_.needs_gradient(id) && !at_once)
      timed(id, Verb::step, 0, [&] { stage_.update(id, input.sgd, rate); });
    progress_between_nodes();
  }
  if (at_once) stage_.update(input.sgd, rate);
}

}  // namespace antichain
