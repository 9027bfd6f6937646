#include "pipeline/run/runner.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain {

StageRunner::StageRunner(Stage& stage, const Profile& network, const Plan& plan, const Schedule& schedule,
                         Mode mode, Transport& transport)
    : stage_(stage),
      graph_(stage.graph()),
      schedule_(schedule),
      mode_(mode),
      transport_(transport),
      context_(stage.context()),
      share_(share_of(plan, transport.rank(), schedule.microbatches)),
      channels_(schedule),
      memory_(stage, network, plan, schedule, transport.rank(), mode) {
  if (mode == Mode::train && share_.replicas > 1)
    sum_.emplace(stage, memory_, stage_of_rank(plan, transport.rank()).ranks, share_, channels_.count());
  for (const Action& a : own_actions()) labels_.push_back(fmt::format("{} {}", print(a), describe(a)));
  list_messages();
  if (transport.ordered()) agree_on_order(network, plan);
  if (!context_.backend().host_memory()) attach_device();
}

const std::vector<Action>& StageRunner::own_actions() const {
  return schedule_.ranks[size_t(transport_.rank())];
}

StepResult StageRunner::run(const StepInput& input, BatchSource& source) {
  try {
    return take_step(input, source);
  } catch (...) {
    transport_.give_up();
    throw;
  }
}

StepResult StageRunner::take_step(const StepInput& input, BatchSource& source) {
  StepResult result;
  begin_step(input, source);
  for (size_t i = 0; i < own_actions().size(); ++i) act(i, input, source, result);
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

void StageRunner::begin_step(const StepInput& input, BatchSource& source) {
  numbers_ = {};
  located_forward_ = located_backward_ = false;
  poison_ = judge_ ? poison_for(transport_.rank(), int64_t(input.step)) : std::nullopt;
  if (feed_) feed_->begin_step(source);
  if (readings_) readings_->begin_step(judge_ != nullptr);  // allocates in the first: not amid messages
  begin_messages();
  times_.emplace(transport_.rank(), input.traced, device_.get(), sheet_);
  if (device_) begin_on_device(input);
}

// One action, with all that watches, times and feeds it.
void StageRunner::act(size_t index, const StepInput& input, BatchSource& source, StepResult& result) {
  const Action& action = own_actions()[index];
  transport_.activity().doing(labels_[index]);
  if (device_) device_->begin_range(print(action));
  times_->start(action);
  if (feed_ && action.verb == Verb::update) feed_->end_step();
  execute(action, input, source, result);
  if (node_stamps_) node_stamps_->let_go();
  times_->end();
  if (device_) {
    device_->end_range();
    transport_.progress();  // nothing did within the action
  }
  if (feed_ && !feed_->empty() && action.verb == Verb::forward) {
    spend(Spent::data);
    feed_->load_ahead(source);
  }
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
      if (mode_ == Mode::evaluate) release(Flow::activation);
      return;
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      start(action, [&] {
        backward(action.microbatch, action.verb, input);
        stamped(no_node, action.verb, action.microbatch,
                [&] { look_at_backward(action.microbatch, action.verb, input); });
      });
      if (action.verb != Verb::backward_weight) release(Flow::gradient);
      if (action.verb != Verb::backward_input) release(Flow::activation);
      return;
    case Verb::send:
      return send(action);
    case Verb::reduce:
      ANTICHAIN_CHECK(sum_, "only a stage with replicas adds up over them");
      return sum_->run(transport_);
    case Verb::update:
      return step(action, input, result);
  }
}

void StageRunner::load(int microbatch, BatchSource& source) {
  if (feed_) return feed_->load(microbatch, source);
  for (const auto& [id, ring] : memory_.output)
    if (graph_[id].role() == Role::input) source.fill(graph_[id].name, microbatch, ring[microbatch]);
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

}  // namespace antichain
