#include "pipeline/run/runner.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "framework/computed.h"
#include "framework/error.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/seconds.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/run/action_text.h"
#include "pipeline/run/message_turns.h"

namespace antichain {
namespace {

// oneDNN allocates an aligned block in a call. Where glibc 2.36 keeps what is left over beside such a block,
// it does not use the block's place for one of that size again once it is free. After some steps it has kept
// what it keeps; until then that place is returned to the system, which takes 20 microseconds an action.
constexpr int steps_to_settle = 10;

// The nodes whose outputs leave the stage for another rank.
std::set<NodeId> sent_nodes(const RankProgram& program, int stage) {
  std::set<NodeId> sent;
  for (const Instruction& a : program.instructions)
    if (a.stage == stage && a.verb == Verb::send && a.message.flow == Flow::activation)
      sent.insert(a.message.tensor);
  return sent;
}

// A backward that reads the newest weights can't read again what its forward has made of older ones.
void check_versions(const RankModel& model, const Plan& plan, const Schedule& schedule, int rank) {
  if (!has_delays(schedule)) return;
  if (!model.context().backend().host_memory())
    throw Error("the schedule trains with older weights, which works on CPU ranks so far",
                "give --device cpu, or a synchronous schedule", ExitCode::usage);
  const KeptVersions kept = kept_versions(schedule, plan, rank);
  for (const auto& [id, count] : kept.older) {
    const std::vector<NodeWeights>& older = model[id].older;
    ANTICHAIN_CHECK(older.empty() || int(older.size()) == count, "the model has the schedule's versions");
  }
  const std::vector<int> stage_of = plan.stage_of(model.graph().size());
  for (const auto& [name, uses] : model.graph().shared()) {
    std::set<int> delays;
    for (const ParamUse& use : uses) delays.insert(schedule.delay(stage_of[size_t(use.node)]));
    delays.erase(0);  // which predict nothing
    if (schedule.predict && delays.size() > 1)
      throw Error(
          fmt::format("stages of different delays share the weight '{}', and each would predict it by "
                      "other steps",
                      name),
          "give --predict none, or another cut by --plan", ExitCode::usage);
  }
  if (schedule.stashes) return;
  for (const NodeId id : model.nodes())
    if (model.graph()[id].op->type() == Computed::type_name && !model.graph()[id].signature.buffers.empty())
      throw Error(fmt::format("node '{}' computes its weights in each forward, and the schedule's backwards "
                              "read other weights than their forwards",
                              model.graph()[id].name),
                  "choose a schedule that stashes weights", ExitCode::usage);
  for (const PlanStage& stage : plan.stages)
    if (!stage.recomputed.empty())
      throw Error("the plan recomputes nodes in backwards that read other weights than their forwards",
                  "give --recompute none, or a schedule that stashes weights", ExitCode::usage);
}

}  // namespace

StageRunner::StageRunner(RankModel& model, const Profile& profile, const Plan& plan, const Schedule& schedule,
                         Mode mode, Transport& transport)
    : model_(model),
      graph_(model.graph()),
      mode_(mode),
      transport_(transport),
      program_(compile(schedule, profile, plan, step_network(model.graph(), model.optimiser()), mode,
                       model.context().backend().host_memory() ? Feed::when_loaded : Feed::one_ahead)),
      memory_(own(), model.context().backend()),
      messages_(
          own(), transport, [this](BufferId buffer, int m) -> const Tensor& { return memory_.at(buffer, m); },
          [this](const Message& message) { return describe(message, graph_); }, names_of_sums()),
      device_(make_step_device(model.context(), transport)) {
  if (mode == Mode::train) check_versions(model, plan, schedule, transport.rank());
  WatchedRank watched{.rank = transport.rank(), .microbatches = schedule.microbatches_of_step()};
  const std::vector<Action>& actions = schedule.ranks[size_t(transport.rank())];
  for (const Seat& seat : own().seats) {
    const StageMemory& memory = memory_.of(seat.stage);
    const std::vector<NodeId>& nodes = plan.stages[size_t(seat.stage)].nodes;
    const auto [calls, added] = calls_.try_emplace(seat.stage, model, nodes, memory, seat, mode, *device_,
                                                   schedule.delay(seat.stage));
    watched.stages[seat.stage] = {nodes, &memory, &calls->second, sent_nodes(own(), seat.stage)};
    feeds_[seat.stage] = device_->make_feed(graph_, memory, seat);
    if (mode == Mode::train && seat.replicas > 1) {
      for (int i = 0; i < int(actions.size()); ++i)
        if (actions[size_t(i)].verb == Verb::reduce) last_gradients_.insert(last_gradient(actions, i));
      buckets_ = gradient_buckets(profile, nodes, std::max(1, buckets_in(actions, seat.stage)));
      const Shards shards = shards_of(step_network(graph_, model.optimiser()), profile, plan, actions, seat);
      sum_.emplace(model, memory, shards, seat, program_.channels, *device_);
      ANTICHAIN_CHECK(shards.of_state() == model.shards().of_state(), "the model has the plan's shards");
      if (shards.of_state() && (transport.ordered() || !model.context().backend().host_memory()))
        throw Error("the plan shards the optimiser, which works on CPU ranks so far",
                    "plan with --shard-optimiser off", ExitCode::usage);
      if (shards.of_state()) shards_.emplace(model, transport, program_.channels + int(SumChannel::weights));
    }
  }
  if (!own().weight_folds.empty()) weights_.emplace(own(), model, memory_, *device_);
  numbers_ = device_->make_numbers(model, watched);
  for (const Action& a : actions) labels_.push_back(fmt::format("{} {}", print(a), describe(a, graph_)));
  if (transport.ordered())
    turns_ = agreed_turns(program_, plan, profile, transport.job(), [&](int bucket, bool scatters) {
      return scatters ? sum_->scatter_turns(bucket) : sum_->gather_turns(bucket);
    });
}

std::map<int, std::string> StageRunner::names_of_sums() const {
  std::map<int, std::string> names;
  for (const auto& [channel, name] :
       {std::pair(SumChannel::gradients, "gradients of a replica, bucket"),
        std::pair(SumChannel::sums, "gradients of all replicas, bucket"),
        std::pair(SumChannel::statistics, "statistics of a replica, micro-batch"),
        std::pair(SumChannel::weights, "part of a replica, parameter")})
    names[program_.channels + int(channel)] = name;
  return names;
}

StepResult StageRunner::run(const StepInput& input, BatchSource& source) {
  begin(input, source);
  return finish();
}

void StageRunner::begin(std::span<const StepInput> inputs, BatchSource& source) try {
  begin_steps(inputs, source);
  for (size_t i = 0; i < own().instructions.size(); ++i) {
    const Instruction& action = own().instructions[i];
    if (action.step >= int(inputs.size())) continue;
    act(i, source);
    if (action.verb == Verb::update && action.step + 1 < int(inputs.size())) {
      begin_gradients();
      if (between_steps_) between_steps_();
    }
  }
  end_step(source);
} catch (...) {
  if (!under_way_.empty()) timer().let_go();
  transport_.give_up();
  throw;
}

StepResult StageRunner::finish() try {
  ANTICHAIN_CHECK(!under_way_.empty(), "a step is begun before it is finished");
  StepResult result;
  device_->before_end();
  numbers_->finish(result);
  if (--under_way_.front().steps > 0) return result;
  under_way_.front().timer->finish();
  result.events = under_way_.front().times->finish();
  under_way_.pop_front();
  return result;
} catch (...) {
  transport_.give_up();
  throw;
}

void StageRunner::begin_steps(std::span<const StepInput> inputs, BatchSource& source) {
  const StepInput& input = inputs.front();
  spoil_.set(numbers_->judged() ? poison_for(transport_.rank(), int64_t(input.step)) : std::nullopt);
  delay_ = mode_ == Mode::train ? delay_for(transport_.rank(), int64_t(input.step)) : 0;
  for (const auto& [stage, feed] : feeds_) feed->begin_step(source);
  numbers_->begin_steps(inputs);
  messages_.begin_step(turns_, int(inputs.size()));
  begin_gradients();
  kept_ = -1;
  std::unique_ptr<StepTimes> times = device_->make_times(transport_.rank(), input.traced, sheet_);
  under_way_.push_back(
      {std::move(times),
       clock_ ? device_->make_timer(clock_, input.traced || sheet_) : std::make_unique<NodeTimer>(),
       int(inputs.size())});
  device_->begin_step(input, numbers_->judged());
  for (auto& [stage, calls] : calls_) calls.begin_steps(inputs, timer(), spoil_);
}

// Each step folds and clips gradients of its own, also where several are in a row.
void StageRunner::begin_gradients() {
  clipped_ = false;
  if (weights_) weights_->begin_step();
}

void StageRunner::end_step(BatchSource& source) {
  for (const auto& [stage, feed] : feeds_) feed->load_next(source);
  transport_.job().activity().doing("delivering the last tensors of the step");
  times().spend(Spent::transfer);
  transport_.flush();
  times().end_step();
  ++steps_done_;
  numbers_->end_step();  // notes the end, which comes after all stamps
}

// One action, with all that watches, times and feeds it.
void StageRunner::act(size_t index, BatchSource& source) {
  const Instruction& action = own().instructions[index];
  InputFeed& feed = *feeds_.at(action.stage);
  transport_.job().activity().doing(labels_[index]);
  device_->begin_action(action);
  times().start(action);
  if (action.verb == Verb::update) feed.end_use();
  const double begin_s = delay_ > 0 ? now_s() : 0;
  execute(index, source);
  if (delay_ > 0 && computes(action.verb))
    std::this_thread::sleep_for(std::chrono::duration<double>(delay_ * (now_s() - begin_s)));
  messages_.done(index);
  timer().let_go();
  times().end();
  device_->end_action();
  if (steps_done_ < steps_to_settle) return_free_memory();
  if (feed.loads_ahead() && action.verb == Verb::forward) {
    times().spend(Spent::data);
    feed.load_ahead(source);
  }
}

void StageRunner::execute(size_t index, BatchSource& source) {
  const Instruction& action = own().instructions[index];
  switch (action.verb) {
    case Verb::load:
      return feeds_.at(action.stage)->load(action.microbatch, source);
    case Verb::recv:
      return messages_.wait(index);
    case Verb::forward:
      return forward(action);
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      return backward(action, index);
    case Verb::send:
      return send(index);
    case Verb::reduce:
      ANTICHAIN_CHECK(sum_, "only a stage with replicas adds up over them");
      return sum_->finish(std::max(action.bucket, 0), transport_);
    case Verb::vote:
      may_update();
      return;
    case Verb::update:
      return update(action);
  }
}

void StageRunner::start(const Action& action, const std::function<void()>& nodes,
                        const std::function<void()>& check) {
  device_->start(action, by_node(), [&] {
    nodes();
    if (check) timer().around(no_node, action.verb, action.microbatch, check);
  });
}

void StageRunner::forward(const Instruction& action) {
  start(
      action, [&] { calls_.at(action.stage).forward(action.microbatch, action.weights, *this); },
      [&] { numbers_->check_forward(action.stage, action.microbatch); });
  numbers_->forward_started(action.stage, action.microbatch);
}

// A step's last backward goes bucket by bucket, and each one's all-reduce begins when its nodes are done.
void StageRunner::backward(const Instruction& action, size_t index) {
  NodeCalls& calls = calls_.at(action.stage);
  const bool last = last_gradients_.contains(int(index));
  int end = calls.nodes();
  for (int k = 0; last && k + 1 < sum_->buckets(); end = buckets_[size_t(k++)].first) {
    Action part = action;
    part.bucket = k;
    const int first = buckets_[size_t(k)].first;
    start(part, [&] { calls.backward(action.microbatch, action.verb, action.weights, *this, first, end); },
          {});
    sum_->begin(k, action.step, transport_);
  }
  start(
      action, [&] { calls.backward(action.microbatch, action.verb, action.weights, *this, 0, end); },
      [&] { numbers_->check_backward(action.stage, action.microbatch, action.verb); });
  if (last) sum_->begin(sum_->buckets() - 1, action.step, transport_);
}

void StageRunner::send(size_t index) {
  const Instruction& action = own().instructions[index];
  if (action.message.flow == Flow::weight && weights_->begins(action.reads.front()))
    device_->start(action, by_node(), [&] { weights_->fold(action.reads.front(), timer()); });
  messages_.send(index);
}

// No action of the schedule starts this work, so the vote, which starts none, stands for it.
void StageRunner::finish_weights() {
  if (weights_ && weights_->begins(no_buffer))
    device_->start({.verb = Verb::vote}, by_node(), [&] { weights_->finish(timer()); });
}

// Asks the clip and the judge, once a step.
bool StageRunner::may_update() {
  finish_weights();
  if ((clip_ || clip_alone_ > 0) && !std::exchange(clipped_, true)) clip_gradients();
  return numbers_->allows_update([&] {
    times().spend(Spent::waiting);  // the judge may ask the other ranks
    device_->before_reading();
  });
}

void StageRunner::clip_gradients() {
  if (!norm_ && shards_) norm_ = std::make_unique<ShardedNorm>(model_, *shards_);
  if (!norm_) norm_ = device_->make_norm(model_);
  if (!clip_) return norm_->clip(clip_alone_);
  times().spend(Spent::waiting);
  device_->before_reading();
  if (const float factor = clip_(norm_->squares()); factor < 1) norm_->scale(factor);
}

void StageRunner::update(const Instruction& action) {
  numbers_->begin_update(action.step);
  if (mode_ == Mode::evaluate || !may_update()) return;
  times().spend(Spent::update);
  if (std::exchange(kept_, action.step) != action.step) model_.keep_weights();
  device_->start(action, by_node(), [&] { calls_.at(action.stage).update(action.step); });
  if (!shards_) return;
  times().spend(Spent::transfer);
  shards_->gather_weights();
}

void StageRunner::after_backward(NodeId, int, std::span<const Tensor>, std::span<const Tensor>) {
  if (sum_) sum_->advance(transport_);
}

void StageRunner::after_forward(NodeId id, int m, const Tensor& y) {
  if (watch_) watch_(id, m, y);
  if (graph_[id].role() == Role::loss)
    timer().around(id, Verb::forward, m, [&] { numbers_->add_loss(id, m, y); });
}

}  // namespace antichain
