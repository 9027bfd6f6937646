// A NodeTimer times the work of single nodes. The class itself times nothing; host_timer.h times calls in
// host memory, and node_stamps.h times work on a device.
#pragma once

#include <functional>

#include "framework/graph.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// The profiler hears the duration of a kernel, of one node's update, or of other work of a node. The verb is
// forward, backward_input, backward_weight, update, or backward where one call computes both halves. It may
// hear of a node and verb several times, and all of them count. As `no_node` it hears what an action does
// besides its nodes, by the action's verb. On a device it hears when the step is done.
using NodeClock = std::function<void(NodeId, Verb, int microbatch, double seconds)>;
constexpr NodeId no_node = -1;

class NodeTimer {
 public:
  virtual ~NodeTimer() = default;

  // Times a part of a node's work.
  template <class Work>
  void around(NodeId id, Verb verb, int microbatch, const Work& work) {
    begin(id, verb, microbatch);
    work();
    end();
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
};

}  // namespace antichain
