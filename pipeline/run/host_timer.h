// In host memory a node's time is that of its call, and of what the host prepares for it after the node
// before. The clock hears of it at once.
#pragma once

#include <utility>

#include "pipeline/host/seconds.h"
#include "pipeline/run/node_timer.h"

namespace antichain {

class HostTimer final : public NodeTimer {
 public:
  explicit HostTimer(NodeClock clock) : clock_(std::move(clock)) {}
  bool listens() const override { return true; }
  void let_go() override { idle_since_s_ = 0; }

 private:
  void begin(NodeId id, Verb verb, int microbatch) override {
    id_ = id, verb_ = verb, microbatch_ = microbatch;
    start_s_ = idle_since_s_ > 0 ? idle_since_s_ : now_s();
  }
  void end() override {
    clock_(id_, verb_, microbatch_, now_s() - start_s_);
    idle_since_s_ = now_s();  // what the clock did is nobody's work
  }

  const NodeClock clock_;
  NodeId id_ = no_node;
  Verb verb_ = Verb::forward;
  int microbatch_ = 0;
  double start_s_ = 0;
  double idle_since_s_ = 0;  // is 0 before an action's first node
};

}  // namespace antichain
