#include "pipeline/run/stream_device.h"

#include <thread>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/run/device_feed.h"
#include "pipeline/run/device_numbers.h"
#include "pipeline/run/node_stamps.h"

namespace antichain {
namespace {

const DeviceStreams& streams_of(const Context& context) {
  const DeviceStreams* streams = device_streams(context.backend().name());
  ANTICHAIN_CHECK(streams, "a device with memory of its own brings its streams in");
  return *streams;
}

}  // namespace

StreamDevice::StreamDevice(Context& context, Transport& transport)
    : context_(context),
      transport_(transport),
      copies_(streams_of(context).copies(context)),
      device_step_(streams_of(context).step(context)) {}

std::unique_ptr<InputFeed> StreamDevice::make_feed(const Graph& graph, const StageMemory& memory,
                                                   const Seat& seat) {
  return std::make_unique<DeviceFeed>(graph, memory, context_.backend(), *device_step_, *copies_, seat,
                                      [&transport = transport_] {
                                        transport.serve();
                                        std::this_thread::yield();
                                      });
}

std::unique_ptr<NumberWatch> StreamDevice::make_numbers(RankModel& model, const WatchedRank& rank) {
  return std::make_unique<DeviceNumbers>(*device_step_, *copies_, model, rank);
}

std::unique_ptr<StepTimes> StreamDevice::make_times(int rank, bool traced, TimeSheet* sheet) {
  return std::make_unique<StampedStepTimes>(rank, traced, sheet, *device_step_);
}

std::unique_ptr<NodeTimer> StreamDevice::make_timer(const NodeClock& clock, bool clocks_tied) {
  if (!clocks_tied) device_step_->tie_clocks(false);
  return std::make_unique<NodeStamps>(*device_step_, clock);
}

void StreamDevice::begin_step(const StepInput& input, bool judged) {
  const Recorded now{input.batch, input.seed, judged, context_.workspace(0), input.means.loss_weights};
  if (now != recorded_) device_step_->forget_recorded();
  recorded_ = now;
  device_step_->set({input.step, input.rate});
}

void StreamDevice::begin_action(const Action& action) { device_step_->begin_range(print(action)); }

// No message moved within the action, because starting its work took little time.
void StreamDevice::end_action() {
  device_step_->end_range();
  transport_.progress();
}

// Repeats the action's recording, once the device has one.
void StreamDevice::start(const Action& action, bool by_node, const std::function<void()>& work) {
  if (by_node) return work();
  device_step_->repeat(keys_.try_emplace(action, int(keys_.size())).first->second, work);
}

void StreamDevice::before_end() {
  transport_.job().activity().doing("waiting for the device to end the step");
}

}  // namespace antichain
