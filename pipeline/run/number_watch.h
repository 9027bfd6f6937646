// A number watch adds up the losses of a step and finds numbers in it that are not finite: host_numbers.h
// where the host sees all numbers at once, device_numbers.h where a device must not be waited for.
//
// Noticing is cheap: after each forward the loss, the statistics and what is sent on are checked; after each
// backward what is sent back and the gradients of vectors (every layer has one, and a gradient that is spoilt
// spoils them); before the update all gradients. Only what does not depend on the cut makes a step bad: loss,
// statistics, gradients of weights.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "framework/graph.h"
#include "framework/tensor.h"
#include "pipeline/run/non_finite.h"
#include "pipeline/run/step.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Hears right before a training step's update whether this rank's numbers are finite. If it answers false,
// weights, slots and buffers stay as they are. Every rank calls it once a step, so it may ask the others.
using NumberJudge = std::function<bool(const NumberReport&)>;

class NodeCalls;
class StageMemory;

// A WatchedStage is one of the stages of the rank that is watched.
struct WatchedStage {
  std::vector<NodeId> nodes;  // ascending
  const StageMemory* memory = nullptr;
  NodeCalls* calls = nullptr;
  std::set<NodeId> sent;  // nodes whose outputs leave the stage for another rank
};
struct WatchedRank {
  int rank = 0, microbatches = 1;
  std::map<int, WatchedStage> stages;  // by their indices in the plan
};

class NumberWatch {
 public:
  virtual ~NumberWatch() = default;

  // Without a judge nothing is checked, and losses are added up all the same. A judge that does not decide,
  // because it ends the job anyway, lets a device update its weights meanwhile and hears after the step.
  void set_judge(NumberJudge judge, bool decides) {
    judge_ = std::move(judge);
    decides_ = decides;
  }
  bool judged() const { return bool(judge_); }

  // Begins one step, or several in a row. Allocates in the first step, so it is called before any message is
  // under way.
  virtual void begin_steps(std::span<const StepInput>) = 0;
  // Says that the step of this index among them updates next, where they are several.
  void begin_update(int step) {
    if (std::exchange(updating_, step) != step) looked_ = false;
  }
  // Adds the losses and hits of a micro-batch, N x 2, right after they are computed.
  virtual void add_loss(NodeId, int microbatch, const Tensor& y) = 0;
  void check_forward(int stage, int microbatch) {
    if (judged()) look_at_forward(stage, microbatch);
  }
  void check_backward(int stage, int microbatch, Verb half) {
    if (judged()) look_at_backward(stage, microbatch, half);
  }
  virtual void forward_started(int /*stage*/, int /*microbatch*/) {}  // its losses are on their way

  // Looks at all gradients of weights. Returns false where the judge, who is asked, forbids the update.
  // `asks` is called before the judge is. The updates of the rank's stages come after all its backwards, so
  // the answer to the first of them holds for the others.
  bool allows_update(const std::function<void()>& asks) {
    if (!judged() || std::exchange(looked_, true)) return updated_;
    look_at_gradients();
    if (!is_asked_before_update()) return true;
    asks();
    return updated_ = ask();
  }
  // Call this when all of the step is started and all messages are delivered.
  virtual void end_step() {}
  // Says what came out of the oldest step that has ended and was not finished.
  virtual void finish(StepResult&) = 0;

 protected:
  // Forgets the steps before. begin_steps calls it.
  void forget() {
    updated_ = true;
    looked_ = false;
    updating_ = 0;
  }
  int updating() const { return updating_; }
  virtual void look_at_forward(int stage, int microbatch) = 0;
  virtual void look_at_backward(int stage, int microbatch, Verb half) = 0;
  virtual void look_at_gradients() = 0;
  virtual bool is_asked_before_update() const { return true; }
  virtual bool ask() = 0;  // brings the report up to date

  NumberJudge judge_;
  bool decides_ = true;
  bool updated_ = true;  // what the judge said
  bool looked_ = false;  // at the gradients of this step

 private:
  int updating_ = 0;
};

}  // namespace antichain
