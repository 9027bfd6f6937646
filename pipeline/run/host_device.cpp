#include "pipeline/run/host_device.h"

#include "framework/backend.h"
#include "pipeline/run/host_feed.h"
#include "pipeline/run/host_numbers.h"
#include "pipeline/run/host_timer.h"
#include "pipeline/run/stream_device.h"

namespace antichain {

std::unique_ptr<StepDevice> make_step_device(Context& context, Transport& transport) {
  if (context.backend().host_memory()) return std::make_unique<HostDevice>(context, transport);
  return std::make_unique<StreamDevice>(context, transport);
}

std::unique_ptr<InputFeed> HostDevice::make_feed(const Graph& graph, const StageMemory& memory, const Seat&) {
  return std::make_unique<HostFeed>(graph, memory);
}

std::unique_ptr<NumberWatch> HostDevice::make_numbers(RankModel& model, const WatchedRank& rank) {
  return std::make_unique<HostNumbers>(model, rank);
}

std::unique_ptr<StepTimes> HostDevice::make_times(int rank, bool traced, TimeSheet* sheet) {
  return std::make_unique<HostStepTimes>(rank, traced, sheet);
}

std::unique_ptr<NodeTimer> HostDevice::make_timer(const NodeClock& clock, bool) {
  return std::make_unique<HostTimer>(clock);
}

void HostDevice::copy(const Tensor& from, const Tensor& to) { context_.backend().copy(context_, from, to); }

}  // namespace antichain
