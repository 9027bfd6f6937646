// The runner executes a rank's program. It is an interpreter with one switch over the verbs.
//
// Between steps it owns nothing but memory. A rank may have several stages, and each action says its own.
// Weights belong to the RankModel, the order of actions and their tensors to the Program, messages go by the
// Transport, and samples come from a BatchSource. Each kind of action is the work of one object:
// StepMessages, NodeCalls with GradientFolds, ReplicaSum, WeightSums, InputFeed, NumberWatch. The last two
// have one implementation for host memory and one for devices; StepDevice makes them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipeline/run/gradient_norm.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/run/node_calls.h"
#include "pipeline/run/node_observer.h"
#include "pipeline/run/node_timer.h"
#include "pipeline/run/number_watch.h"
#include "pipeline/run/replica_sum.h"
#include "pipeline/run/shard_exchange.h"
#include "pipeline/run/spoil.h"
#include "pipeline/run/step.h"
#include "pipeline/run/step_device.h"
#include "pipeline/run/step_messages.h"
#include "pipeline/run/step_times.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/run/weight_sums.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// A NodeWatch is called with each node's output right after its forward; `y` is valid only during the call.
using NodeWatch = std::function<void(NodeId, int microbatch, const Tensor& y)>;

class StageRunner : private NodeObserver {
 public:
  // `model` has the nodes of all stages of this rank. Everything referred to must outlive the runner, but not
  // the plan and the profile. Where the plan shards the optimiser, the model must have the shards of this
  // plan and schedule. Collective where the transport is ordered: the ranks then agree on the order of
  // messages, and it throws Error when they find different ones. It also throws Error for a plan or a
  // schedule that does not fit the model, and where older weights can't be kept or be told apart. The model
  // must keep as many of them as the schedule says (kept_versions).
  StageRunner(RankModel&, const Profile& profile, const Plan&, const Schedule&, Mode, Transport&);

  // Runs one step. Collective over the ranks of the schedule. Throws Error when samples can't be had, when a
  // message has the wrong size, when another rank has ended the job, and whatever the judge throws. Then the
  // step is lost, and neither the runner nor its transport can be used any more.
  StepResult run(const StepInput&, BatchSource&);

  // These run a step in two parts: `begin` starts all that a device does in a step, and `finish` waits for
  // the oldest step that was begun. In host memory `begin` does all of it. At most steps_at_once() steps may
  // be begun and not finished.
  void begin(const StepInput& input, BatchSource& source) { begin(std::span(&input, 1), source); }
  StepResult finish();
  // Begins so many of the steps that the schedule has in a row. Each is finished by itself. Micro-batches,
  // which the source is asked for, count on through all steps. The inputs must live until the last is
  // finished.
  void begin(std::span<const StepInput>, BatchSource&);
  // Has `begin` call this after each of these steps but the last, in which such a step may be finished.
  void set_between_steps(std::function<void()> call) { between_steps_ = std::move(call); }
  int steps_at_once() const { return device_->steps_at_once(); }

  // With a clock, backward asks for its halves one after the other, so that each is timed (same bits).
  void set_clock(NodeClock clock) { clock_ = std::move(clock); }
  void set_watch(NodeWatch watch) { watch_ = std::move(watch); }
  // With a judge, every training step is checked for numbers that are not finite. A judge with `decides`
  // false ends the job anyway: a device updates its weights meanwhile, and the judge is asked after the step.
  // A runner that evaluates asks no judge.
  void set_judge(NumberJudge judge, bool decides = true) {
    if (mode_ == Mode::train) numbers_->set_judge(std::move(judge), decides);
  }
  // With a clip, the runner asks it in every training step before it asks the judge, and scales the gradients
  // by the answer. The schedule has a vote where there are several ranks.
  void set_clip(GradientClip clip) { clip_ = std::move(clip); }
  // Clips without asking, on a rank that trains alone.
  void set_clip(double most) { clip_alone_ = most; }
  // Enters each action's time in the sheet; after a step time counts as `other`. nullptr: there is no sheet.
  void set_time_sheet(TimeSheet* sheet) { sheet_ = sheet; }
  int64_t bytes() const { return memory_.bytes(); }  // of a step's tensors, besides weights and their state

 private:
  const RankProgram& own() const { return program_.ranks[size_t(transport_.rank())]; }
  struct StepUnderWay {
    std::unique_ptr<StepTimes> times;
    std::unique_ptr<NodeTimer> timer;
    int steps = 1;  // in a row, that are not finished
  };
  StepTimes& times() { return *under_way_.back().times; }  // of the step that is begun
  NodeTimer& timer() { return *under_way_.back().timer; }
  void begin_steps(std::span<const StepInput>, BatchSource&);
  void begin_gradients();
  void end_step(BatchSource&);
  void act(size_t index, BatchSource&);
  void execute(size_t index, BatchSource&);
  void forward(const Instruction&);
  void backward(const Instruction&, size_t index);
  std::map<int, std::string> names_of_sums() const;
  void send(size_t index);
  void finish_weights();
  bool may_update();
  void clip_gradients();
  void update(const Instruction&);
  // Runs the nodes of an action, then checks their numbers, if `check` is not empty.
  void start(const Action&, const std::function<void()>& nodes, const std::function<void()>& check);
  bool by_node() { return timer().listens() || watch_ || spoil_.active(); }
  void after_forward(NodeId, int microbatch, const Tensor& y) override;
  void after_backward(NodeId, int, std::span<const Tensor>, std::span<const Tensor>) override;

  RankModel& model_;
  const Graph& graph_;
  const Mode mode_;
  Transport& transport_;
  const Program program_;
  RankMemory memory_;
  StepMessages messages_;
  std::vector<Turn> turns_;          // where the transport keeps messages in an order
  std::vector<std::string> labels_;  // of the actions, for the watchdog
  NodeClock clock_;
  NodeWatch watch_;
  std::function<void()> between_steps_;
  GradientClip clip_;
  double clip_alone_ = 0;
  bool clipped_ = false;  // the gradients of this step
  int steps_done_ = 0;
  int kept_ = -1;     // the last step before whose update the weights were kept
  Spoil spoil_;       // a fault on demand
  double delay_ = 0;  // another one: so many times longer takes what is computed
  TimeSheet* sheet_ = nullptr;

  // The device is destroyed before what its work reads, and the timers, which use it, before the device.
  std::map<int, std::unique_ptr<InputFeed>> feeds_;  // by stage
  std::map<int, NodeCalls> calls_;                   // by stage
  // These are for a stage with replicas.
  std::optional<ReplicaSum> sum_;
  std::optional<ShardExchange> shards_;  // where they share out the optimiser's state
  std::vector<GradientBucket> buckets_;
  std::set<int> last_gradients_;       // indices of the actions that complete the gradients of a step
  std::optional<WeightSums> weights_;  // where several nodes have a weight
  std::unique_ptr<NumberWatch> numbers_;
  std::unique_ptr<GradientNorm> norm_;  // where gradients are clipped
  std::unique_ptr<StepDevice> device_;
  std::deque<StepUnderWay> under_way_;  // steps, the oldest first
};

}  // namespace antichain
