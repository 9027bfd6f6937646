// A StreamDevice has its stage on a device with memory of its own. The calls of a step only start work in the
// rank's stream, and the host waits at the step's end.
#pragma once

#include <cstdint>
#include <map>

#include "pipeline/device/device_streams.h"
#include "pipeline/run/step_device.h"

namespace antichain {

class StreamDevice final : public StepDevice {
 public:
  StreamDevice(Context&, Transport&);

  std::unique_ptr<InputFeed> make_feed(const Graph&, const StageMemory&, const Seat&) override;
  std::unique_ptr<NumberWatch> make_numbers(RankModel&, const WatchedRank&) override;
  std::unique_ptr<GradientNorm> make_norm(RankModel& model) override {
    return std::make_unique<DeviceNorm>(model, *device_step_, *copies_);
  }
  std::unique_ptr<StepTimes> make_times(int rank, bool traced, TimeSheet*) override;
  std::unique_ptr<NodeTimer> make_timer(const NodeClock&, bool clocks_tied) override;

  int steps_at_once() const override { return device_step_->steps_at_once(); }
  void begin_step(const StepInput&, bool judged) override;
  void begin_action(const Action&) override;
  void end_action() override;
  void start(const Action&, bool by_node, const std::function<void()>& work) override;
  void before_reading() override { transport_.flush(); }
  void before_end() override;
  Moment computed() override { return device_step_->computed(); }
  void beside(const Moment& after, const std::function<void()>& work) override {
    device_step_->beside(after, work);
  }
  void rejoin() override { device_step_->rejoin(); }
  void copy(const Tensor& from, const Tensor& to) override { device_step_->copy(from, to); }
  const StepNumbers* numbers() const override { return device_step_->numbers(); }
  bool updates_at_once() const override { return true; }

 private:
  struct Recorded {  // what recorded work was told, besides the step numbers
    int batch = 0;
    uint64_t seed = 0;
    bool judged = false;
    const std::byte* workspace = nullptr;
    std::map<NodeId, double> loss_weights = {};
    bool operator==(const Recorded&) const = default;
  };
  Context& context_;
  Transport& transport_;
  // The last member is destroyed first: it ends the work that uses everything else.
  std::unique_ptr<CopyStream> copies_;
  std::unique_ptr<DeviceStep> device_step_;
  Recorded recorded_;
  std::map<Action, int> keys_;  // of recordings
};

}  // namespace antichain
