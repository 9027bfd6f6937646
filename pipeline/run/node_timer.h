// A NodeTimer times the kernels of single nodes. The class itself times nothing; host_timer.h times calls in
// host memory, and node_stamps.h times work on a device.
#pragma once

#include <functional>

#include "framework/graph.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// The profiler hears the duration of one kernel, or of one node's update. The verb is forward,
// backward_input, backward_weight, update, or backward where one call computes both halves. On a device it
// hears when the step is done, and may hear of a node and verb several times (all of them count). As
// `no_node` it hears what an action does besides its nodes, by the action's verb.
using NodeClock = std::function<void(NodeId, Verb, int microbatch, double seconds)>;
constexpr NodeId no_node = -1;

class NodeTimer {
 public:
  virtual ~NodeTimer() = default;

  // Times a kernel, or one node's update.
  template <class Work>
  void around(NodeId id, Verb verb, int microbatch, const Work& work) {
    begin(id, verb, microbatch);
    work();
    end();
  }
  // Times work besides kernels, on devices only: in host memory it is part of what an action takes besides
  // its nodes.
  template <class Work>
  void around_rest(NodeId id, Verb verb, int microbatch, const Work& work) {
    if (!times_rest()) return work();
    around(id, verb, microbatch, work);
  }

  // Says whether anybody hears of single nodes.
  virtual bool listens() const { return false; }
  // Says whether each half of a whole backward must be a call of its own.
  virtual bool parts_backwards() const { return false; }
  virtual void let_go() {}  // before the host waits for anything
  virtual void finish() {}  // when the device is done with the step

 private:
  virtual void begin(NodeId, Verb, int /*microbatch*/) {}
  virtual void end() {}
  virtual bool times_rest() const { return false; }
};

}  // namespace antichain
