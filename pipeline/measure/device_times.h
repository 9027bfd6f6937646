// A DeviceTimes computes the costs of a network's nodes on a device, from three kinds of steps of the whole
// network.
//
//   with a clock   each node is timed, and kernels run one after the other without a gap
//                  (pipeline/run/node_stamps.h). This gives each node's share of an action, and the share of
//                  what an action does besides.
//   traced         whole forwards, backwards and updates are timed as in training, where the host starts work
//                  in its own way. These are the sums.
//   plain          whole steps are timed. The time outside their actions is overhead, the same for every
//                  forward and backward.
//
// So the step predicted for one rank is the plain one, and a stage's share of it is that of its nodes.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "partition/profile/profile.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

// Returns a node's time for a verb of the clock: forward, backward_input, backward_weight or update.
double& time_of(NodeCost&, Verb);

class DeviceTimes {
 public:
  explicit DeviceTimes(int microbatches) : microbatches_(microbatches) {}

  void add_node(NodeId, Verb, double seconds);  // in a step with a clock; no_node: besides the nodes
  void end_of_nodes();                          // of the step with a clock
  void forget_nodes() { step_.clear(); }        // of a warm-up step
  void add_traced(const std::vector<Event>&);
  void add_plain(double seconds) { plain_s_.push_back(seconds); }

  // Sets the times: medians over the steps, and means over a step's micro-batches.
  void price(Profile&) const;

 private:
  enum Part { forward, backward, update };
  using Key = std::pair<NodeId, Verb>;
  static Part part_of(Verb);

  const int microbatches_;
  std::map<Key, double> step_;  // sums of the current step
  std::map<Key, std::vector<double>> nodes_s_;
  std::array<std::vector<double>, 3> traced_s_;
  std::vector<double> plain_s_;
};

}  // namespace antichain
