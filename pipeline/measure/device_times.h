// The prices of a network on a device, from three kinds of steps of the whole network.
//
//   with a clock   each node's time, kernels one after the other without a gap (pipeline/run/node_stamps.h):
//                  the shares of the nodes in an action, and that of what an action does besides
//   traced         what a forward, a backward and an update take in training, where the host starts things
//                  its own way: their sums
//   plain          what a step takes: what is not in its actions is their overhead, the same for every
//                  forward and backward
//
// So the step that is predicted of one rank is the plain one, and a stage's share of it is its nodes' share.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "partition/profile/profile.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

// Of a node, by the verb that a clock tells: forward, backward_input, backward_weight or step.
double& time_of(NodeCost&, Verb);

class DeviceTimes {
 public:
  explicit DeviceTimes(int microbatches) : microbatches_(microbatches) {}

  void add_node(NodeId, Verb, double seconds);  // of a step with a clock, or no_node's
  void end_of_nodes();                          // of that step
  void forget_nodes() { step_.clear(); }        // of a step that was a warm-up
  void add_traced(const std::vector<Event>&);
  void add_plain(double seconds) { plain_s_.push_back(seconds); }

  // Medians over the steps; means over a step's micro-batches.
  void price(Profile&) const;

 private:
  enum Part { forward, backward, update };
  using Key = std::pair<NodeId, Verb>;
  static Part part_of(Verb);

  const int microbatches_;
  std::map<Key, double> step_;  // sums of the step under way
  std::map<Key, std::vector<double>> nodes_s_;
  std::array<std::vector<double>, 3> traced_s_;
  std::vector<double> plain_s_;
};

}  // namespace antichain
