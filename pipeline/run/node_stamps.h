// How long a device takes for each node of a step: stamps around the node's work, read when the step is done.
//
// Many kernels of small networks are shorter than what the host needs to start one. So the device is held
// until some dozen nodes have been started, and does them without a gap. A stamp takes time of its own:
// stamps around nothing say how much.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// What the profiler hears: one kernel's (or update's) duration. The verb is forward, backward_input,
// backward_weight or step. On a device it hears when the step is done, maybe of a node and verb several times
// (all of them count), and of `no_node` what an action does besides its nodes, by its own verb.
using NodeClock = std::function<void(NodeId, Verb, int microbatch, double seconds)>;
constexpr NodeId no_node = -1;

class NodeStamps {
 public:
  // Of one step; the device's clock is tied already.
  NodeStamps(DeviceStep& device, NodeClock clock) : device_(device), clock_(std::move(clock)) {}
  ~NodeStamps() { let_go(); }
  NodeStamps(const NodeStamps&) = delete;

  template <class Work>
  void around(NodeId id, Verb verb, int microbatch, const Work& work) {
    begin(id, verb, microbatch);
    work();
    end();
  }
  void let_go();  // before the host waits for anything
  void finish();  // when the device is done: the clock hears

 private:
  struct Stamped {
    NodeId id;
    Verb verb;
    int microbatch;
    size_t begin, end = 0;
  };
  void begin(NodeId, Verb, int microbatch);
  void end();

  DeviceStep& device_;
  const NodeClock clock_;
  std::vector<Stamped> stamped_;
  std::vector<std::pair<size_t, size_t>> empty_;  // stamps with nothing between
  int held_ = 0;                                  // nodes, of those that the device is held for
  bool holds_ = false;
};

}  // namespace antichain
