// What the runner asks of the memory that its stage lives in, besides kernels. In host memory work is done
// when its call returns, and messages move between nodes. A device with memory of its own is only told to
// start work, and the host waits for it once, at the step's end.
#pragma once

#include <functional>
#include <memory>

#include "framework/context.h"
#include "framework/sgd.h"
#include "pipeline/device/device_step.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/run/node_timer.h"
#include "pipeline/run/number_watch.h"
#include "pipeline/run/step.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class NodeCalls;

class StepDevice {
 public:
  virtual ~StepDevice() = default;

  // Makes the objects that this kind of memory has its own kinds of. What they refer to must outlive them; on
  // a device they must outlive this one, too, which ends its work first.
  virtual std::unique_ptr<InputFeed> make_feed(const Graph&, const StageMemory&, const Seat&) = 0;
  virtual std::unique_ptr<NumberWatch> make_numbers(Stage&, const StageMemory&, const WatchedRank&,
                                                    NodeCalls&) = 0;
  // `clocks_tied`: StepTimes has tied this step's clocks already.
  virtual std::unique_ptr<NodeTimer> make_timer(const NodeClock&, bool clocks_tied) = 0;

  // What gives stamps of the device's time; nullptr in host memory, where the host's clock does.
  virtual DeviceStep* stamps() { return nullptr; }

  virtual void begin_step(const StepInput&, bool /*judged*/) {}
  virtual void begin_action(const Action&) {}
  virtual void end_action() {}
  // Does the work of an action, or has it started. With `by_node` no recording of the action may stand for
  // it, because somebody listens between nodes or spoils a number there.
  virtual void start(const Action&, bool by_node, const std::function<void()>& work) = 0;
  virtual void between_nodes() {}
  // Before the host reads what the step left: messages are delivered first, because waiting for them names
  // the peer.
  virtual void before_reading() {}
  virtual void before_end() {}  // of the step: tells the watchdog what the host waits for

  // Between two tensors of one size.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  // Where the step's numbers stand for recorded work; nullptr where kernels are told them in each call.
  virtual const StepNumbers* numbers() const { return nullptr; }
  // Whether all parameters are updated by one launch.
  virtual bool updates_at_once() const { return false; }
};

// For the memory of the context. All must outlive it.
std::unique_ptr<StepDevice> make_step_device(Context&, const Schedule&, Transport&);

}  // namespace antichain
