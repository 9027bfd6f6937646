// Node stamps tell how long a device takes for each node of a step: they lie around the node's work, and are
// read when the step is done.
//
// Many kernels of small networks are shorter than what the host needs to start one. So the device is held
// until some dozen nodes have been started, and does them without a gap. A stamp takes time of its own:
// stamps around nothing say how much.
#pragma once

#include <utility>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/run/node_timer.h"

namespace antichain {

class NodeStamps final : public NodeTimer {
 public:
  // It is for one step, after the device's clock was tied to the host's. The device must outlive it.
  NodeStamps(DeviceStep& device, NodeClock clock) : device_(device), clock_(std::move(clock)) {}
  ~NodeStamps() override { let_go(); }
  NodeStamps(const NodeStamps&) = delete;

  bool listens() const override { return true; }
  bool parts_backwards() const override { return true; }
  void let_go() override;
  void finish() override;  // the clock hears

 private:
  struct Stamped {
    NodeId id;
    Verb verb;
    int microbatch;
    Stamp begin, end;
  };
  void begin(NodeId, Verb, int microbatch) override;
  void end() override;

  DeviceStep& device_;
  const NodeClock clock_;
  std::vector<Stamped> stamped_;
  std::vector<std::pair<Stamp, Stamp>> empty_;  // stamps with nothing between
  int held_ = 0;                                // nodes, of those that the device is held for
  bool holds_ = false;
};

}  // namespace antichain
