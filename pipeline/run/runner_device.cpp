// The runner's side of a device that has memory of its own: the calls of a step only start work, and the host
// waits at its end.
#include <thread>

#include "framework/error.h"
#include "pipeline/run/runner.h"

namespace antichain {

void StageRunner::attach_device() {
  const DeviceStreams* streams = device_streams(context_.backend().name());
  ANTICHAIN_CHECK(streams, "a device with memory of its own brings its streams in");
  copies_ = streams->copies(context_);
  device_ = streams->step(context_);
  feed_ =
      std::make_unique<InputFeed>(graph_, memory_, context_.backend(), *device_, *copies_, share_, [this] {
        transport_.serve();
        std::this_thread::yield();
      });
  readings_ = std::make_unique<DeviceReadings>(
      *device_, *copies_, stage_, memory_,
      DeviceReadings::Place{transport_.rank(), schedule_.microbatches, sent_});
}

void StageRunner::begin_on_device(const StepInput& input) {
  node_stamps_.reset();  // of a step that failed
  if (clock_) {
    if (!input.traced && !sheet_) device_->tie_clocks(false);
    node_stamps_.emplace(*device_, clock_);
  }
  const Recorded now{input.batch, input.seed, input.sgd, judge_ != nullptr, context_.workspace(0)};
  if (now != recorded_) device_->forget_recorded();
  recorded_ = now;
  device_->set({input.step, input.rate});
}

// An action's work: host memory gets it done, a device has it started, as a recording once it knows it. Who
// listens between nodes, or spoils a number there, has the nodes started one by one.
void StageRunner::start(const Action& action, const std::function<void()>& work) {
  if (!device_ || clock_ || watch_ || poison_) return work();
  device_->repeat(int(action.verb) * schedule_.microbatches + action.microbatch, work);
}

// Messages move while a long action is computed; the device's work is short to start, and has no other
// effect.
void StageRunner::progress_between_nodes() {
  if (!device_) transport_.progress();
}

// The one wait of a step, unless the judge had to know before the update.
void StageRunner::finish_on_device(StepResult& result) {
  transport_.activity().doing("waiting for the device to end the step");
  if (readings_->was_read()) return device_->wait();
  readings_->read(result, numbers_);
  if (judge_ && mode_ == Mode::train) result.updated = judge_(numbers_);
}

}  // namespace antichain
