#include "pipeline/measure/device_times.h"

#include <algorithm>

#include "pipeline/host/median.h"
#include "pipeline/run/node_stamps.h"

namespace antichain {

double& time_of(NodeCost& cost, Verb verb) {
  switch (verb) {
    case Verb::forward:
      return cost.forward_s;
    case Verb::backward_input:
      return cost.backward_input_s;
    case Verb::backward_weight:
      return cost.backward_weight_s;
    default:
      return cost.update_s;
  }
}

DeviceTimes::Part DeviceTimes::part_of(Verb verb) {
  return verb == Verb::forward ? forward : verb == Verb::update ? update : backward;
}

void DeviceTimes::add_node(NodeId id, Verb verb, double seconds) {
  step_[{id, verb}] += verb == Verb::update ? seconds : seconds / microbatches_;
}

void DeviceTimes::end_of_nodes() {
  for (const auto& [key, seconds] : step_) nodes_s_[key].push_back(seconds);
  step_.clear();
}

void DeviceTimes::add_traced(const std::vector<Event>& events) {
  std::array<double, 3> sums_s{};
  for (const Event& e : events) {
    const Verb verb = e.action.verb;
    const bool computes = verb == Verb::forward || verb == Verb::backward || verb == Verb::update;
    if (computes) sums_s[part_of(verb)] += e.end_s - e.start_s;
  }
  traced_s_[forward].push_back(sums_s[forward] / microbatches_);
  traced_s_[backward].push_back(sums_s[backward] / microbatches_);
  traced_s_[update].push_back(sums_s[update]);
}

void DeviceTimes::price(Profile& profile) const {
  std::array<double, 3> nodes_s{}, action_s{};
  for (const auto& [key, seconds] : nodes_s_) nodes_s[part_of(key.second)] += median(seconds);
  for (const Part part : {forward, backward, update}) action_s[part] = median(traced_s_[part]);
  double besides_s = 0;  // of a forward and a backward
  for (const auto& [key, seconds] : nodes_s_) {
    const auto& [id, verb] = key;
    const Part part = part_of(verb);
    const double share_s = nodes_s[part] > 0 ? median(seconds) / nodes_s[part] * action_s[part] : 0;
    if (id == no_node) {
      besides_s += share_s;
      continue;
    }
    time_of(profile.nodes[size_t(id)].cost, verb) = share_s;
  }
  const double between_s =
      (median(plain_s_) - action_s[update]) / microbatches_ - action_s[forward] - action_s[backward];
  profile.overhead_s = (besides_s + std::max(0.0, between_s)) / 2;
}

}  // namespace antichain
