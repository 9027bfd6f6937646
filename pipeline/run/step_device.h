// A StepDevice does what depends on where the stage's tensors are, besides kernels. In host memory work is
// done when its call returns, and messages move between nodes. On a device with its own memory calls only
// start work, and the host waits for it once, at the step's end or while the next step is under way.
#pragma once

#include <functional>
#include <memory>

#include "framework/context.h"
#include "pipeline/device/device_step.h"
#include "pipeline/run/gradient_norm.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/run/node_timer.h"
#include "pipeline/run/number_watch.h"
#include "pipeline/run/step.h"
#include "pipeline/run/step_times.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class StepDevice {
 public:
  virtual ~StepDevice() = default;

  // These make the objects that differ between host memory and a device. What they refer to must outlive
  // them. On a device they must outlive this object, too, because it ends its work first.
  virtual std::unique_ptr<InputFeed> make_feed(const Graph&, const StageMemory&, const Seat&) = 0;
  virtual std::unique_ptr<NumberWatch> make_numbers(RankModel&, const WatchedRank&) = 0;
  virtual std::unique_ptr<GradientNorm> make_norm(RankModel&) = 0;
  // The sheet may be nullptr.
  virtual std::unique_ptr<StepTimes> make_times(int rank, bool traced, TimeSheet*) = 0;
  // `clocks_tied` says that make_times has tied this step's clocks already.
  virtual std::unique_ptr<NodeTimer> make_timer(const NodeClock&, bool clocks_tied) = 0;

  // Returns how many steps may be under way: begun, and not finished.
  virtual int steps_at_once() const { return 1; }
  virtual void begin_step(const StepInput&, bool /*judged*/) {}
  virtual void begin_action(const Action&) {}
  virtual void end_action() {}
  // Does the work of an action, or starts it on the device. With `by_node` no recording may replace the
  // calls, because something listens or spoils a number between nodes.
  virtual void start(const Action&, bool by_node, const std::function<void()>& work) = 0;
  virtual void between_nodes() {}
  // Called before the host reads the step's results. On a device it first delivers all messages, because that
  // wait names the peer.
  virtual void before_reading() {}
  virtual void before_end() {}  // tells the watchdog what the host waits for at the step's end

  // Does work beside computing, after the computing that had been started at the moment `after`. A device may
  // compute on meanwhile. After `rejoin` computing waits for all such work.
  virtual Moment computed() { return nullptr; }  // now
  virtual void beside(const Moment& /*after*/, const std::function<void()>& work) { work(); }
  virtual void rejoin() {}

  // Copies between two tensors of one size.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  // Returns where recorded work reads the step's numbers, or nullptr where each call passes them.
  virtual const StepNumbers* numbers() const { return nullptr; }
  // Returns whether one launch updates all parameters.
  virtual bool updates_at_once() const { return false; }
};

// Makes the StepDevice for the memory of the context. All arguments must outlive it.
std::unique_ptr<StepDevice> make_step_device(Context&, Transport&);

}  // namespace antichain
