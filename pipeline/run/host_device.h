// A HostDevice has its stage in host memory: an action's work is done when its call returns.
#pragma once

#include "pipeline/run/step_device.h"

namespace antichain {

class HostDevice final : public StepDevice {
 public:
  HostDevice(Context& context, Transport& transport) : context_(context), transport_(transport) {}

  std::unique_ptr<InputFeed> make_feed(const Graph&, const StageMemory&, const Seat&) override;
  std::unique_ptr<NumberWatch> make_numbers(RankModel&, const WatchedRank&) override;
  std::unique_ptr<GradientNorm> make_norm(RankModel& model) override {
    return std::make_unique<HostNorm>(model);
  }
  std::unique_ptr<StepTimes> make_times(int rank, bool traced, TimeSheet*) override;
  std::unique_ptr<NodeTimer> make_timer(const NodeClock&, bool clocks_tied) override;

  void start(const Action&, bool, const std::function<void()>& work) override { work(); }
  void between_nodes() override { transport_.progress(); }  // messages move while a long action is computed
  void copy(const Tensor& from, const Tensor& to) override;

 private:
  Context& context_;
  Transport& transport_;
};

}  // namespace antichain
