// The runner obeys the schedule: an interpreter, one switch over the verbs.
//
// It owns nothing that outlives a step but memory: weights are the Stage's, the order of actions is the
// Schedule's, bytes travel by the Transport, samples come from a BatchSource.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/host/fault.h"
#include "pipeline/run/device_readings.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/run/node_stamps.h"
#include "pipeline/run/replica_sum.h"
#include "pipeline/run/step.h"
#include "pipeline/run/step_times.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/schedule/channels.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Hears of the outputs of the stage's nodes, each right after its forward: valid only until it returns.
using NodeWatch = std::function<void(NodeId, int microbatch, const Tensor& y)>;

// Hears right before a training step's update whether this rank's numbers are finite; false: weights,
// momentum and buffers stay as they are. Called by every rank once a step, so it may ask the others.
using NumberJudge = std::function<bool(const NumberReport&)>;

class StageRunner {
 public:
  // Everything referred to must outlive the runner.
  StageRunner(Stage&, const Profile& network, const Plan&, const Schedule&, Mode, Transport&);

  StepResult run(const StepInput&, BatchSource&);

  // With a clock, backward asks for its halves one after the other, so that each is timed (same bits).
  void set_clock(NodeClock clock) { clock_ = std::move(clock); }
  void set_watch(NodeWatch watch) { watch_ = std::move(watch); }
  // With a judge, every training step is looked through for numbers that are not finite. One that does not
  // decide, because it ends the job anyway, lets a device update its weights meanwhile and hears after the
  // step.
  void set_judge(NumberJudge judge, bool decides = true) {
    judge_ = std::move(judge);
    judge_decides_ = decides;
  }
  // Each action's time is entered there; after a step it runs on as `other`. nullptr: nowhere.
  void set_time_sheet(TimeSheet* sheet) { sheet_ = sheet; }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  struct Arrival {
    int peer = 0;
    MessageKey key;
    Transport::Ticket ticket = 0;
  };
  struct Receive {  // one message's receives, posted as far ahead as its ring of buffers allows
    Message message;
    const Ring* ring = nullptr;
    size_t posted = 0, awaited = 0, released = 0;
    std::vector<Arrival> arrivals;  // in micro-batch order, each from the replica whose turn it was
  };

  const std::vector<Action>& own_actions() const;
  StepResult take_step(const StepInput&, BatchSource&);
  void begin_step(const StepInput&, BatchSource&);
  void act(size_t index, const StepInput&, BatchSource&, StepResult&);
  void execute(const Action&, const StepInput&, BatchSource&, StepResult&);
  void load(int microbatch, BatchSource&);
  void step(const Action&, const StepInput&, StepResult&);
  void spend(Spent kind) {
    if (times_) times_->spend(kind);
  }

  // runner_messages.cpp
  std::string describe(const Message&) const;
  std::string describe(const Action&) const;
  void list_messages();
  void agree_on_order(const Profile& network, const Plan&);
  void begin_messages();
  void send(const Action&);
  Receive& receive(const Message&);
  void wait(const Action&);
  void post_receives();
  void release(Flow);

  // runner_nodes.cpp
  DropoutKey dropout_key(const StepInput&, int microbatch) const;
  void forward(int microbatch, const StepInput&, StepResult&);
  void backward(int microbatch, Verb half, const StepInput&);
  void backward_node(NodeId, int microbatch, bool input_half, bool weight_half, const StepInput&);
  void backward_halves(NodeId, int microbatch, Backward&, std::span<const Tensor> dw, bool input_half,
                       bool weight_half);
  void update(const StepInput&);
  template <class Work>
  void timed(NodeId, Verb, int microbatch, const Work&);
  // What is timed on devices only: in host memory it is among what an action takes besides its nodes.
  template <class Work>
  void stamped(NodeId id, Verb verb, int microbatch, const Work& work) {
    if (!node_stamps_) return work();
    node_stamps_->around(id, verb, microbatch, work);
  }

  // runner_folds.cpp
  std::vector<Tensor> begin_folds(NodeId, int microbatch);
  void end_folds(NodeId, int microbatch, const std::vector<Tensor>& dx);
  void fold_received(const std::vector<Message>&, int microbatch, const Tensor& sum, bool empty);
  Tensor output_gradient(NodeId, int microbatch, bool finish);

  // runner_numbers.cpp: a cheap look at what leaves the stage and at small gradients; a second run of the
  // micro-batch, node by node, where that finds something.
  void look_at_forward(int microbatch, const StepInput&, const StepResult&);
  void look_at_backward(int microbatch, Verb half, const StepInput&);
  void look_at_gradients();
  void note_output(NodeId, int microbatch);
  void note_gradients(NodeId, int microbatch, const std::vector<Tensor>& dx, std::span<const Tensor> dw);
  bool finite(const std::vector<Tensor>&) const;
  void poison(NodeId, int microbatch, bool gradient, const Tensor&) const;

  // runner_device.cpp
  void attach_device();
  void begin_on_device(const StepInput&);
  void start(const Action&, const std::function<void()>& work);
  void progress_between_nodes();
  void finish_on_device(StepResult&);

  Stage& stage_;
  const Graph& graph_;
  const Schedule& schedule_;
  const Mode mode_;
  Transport& transport_;
  std::vector<std::string> labels_;                          // of the actions, for the watchdog
  std::shared_ptr<const std::map<int, std::string>> names_;  // of the channels, likewise
  Context& context_;
  const Share share_;
  Channels channels_;
  StageMemory memory_;
  std::optional<ReplicaSum> sum_;  // where the stage has replicas
  std::vector<Receive> receives_;
  std::vector<Turn> turns_;  // of this rank, where the transport is ordered
  NodeClock clock_;
  NodeWatch watch_;
  NumberJudge judge_;
  bool judge_decides_ = true;
  TimeSheet* sheet_ = nullptr;
  std::optional<StepTimes> times_;                           // of the step under way
  std::set<NodeId> sent_;                                    // whose outputs leave the stage
  NumberReport numbers_;                                     // of the step under way
  bool located_forward_ = false, located_backward_ = false;  // in this step: the first micro-batch counts
  bool locating_ = false;                                    // while a micro-batch is run again
  std::optional<Poison> poison_;                             // a fault on demand

  // Where the device has memory of its own. What works on it beside the host goes first, when all it reads is
  // still there.
  std::unique_ptr<InputFeed> feed_;
  std::unique_ptr<DeviceReadings> readings_;
  std::unique_ptr<CopyStream> copies_;
  std::unique_ptr<DeviceStep> device_;
  std::optional<NodeStamps> node_stamps_;  // of a step under way that has a clock
  struct Recorded {                        // what recorded work was told, besides the step numbers
    int batch = 0;
    uint64_t seed = 0;
    SgdOptions sgd;
    bool judged = false;
    const std::byte* workspace = nullptr;
    bool operator==(const Recorded&) const = default;
  } recorded_;
};

}  // namespace antichain
