#include "partition/plan/stage_cost.h"

#include <cmath>
#include <set>
#include <string_view>

#include "framework/error.h"
#include "partition/plan/working_set.h"

namespace antichain {
namespace {

constexpr double ns_per_s = 1e9;

// A time that a link takes is bounded, so that it can be added up like everything else.
int64_t round_link_ns(double ns) {
  if (!(ns < 0x1p53))
    throw Error("the link takes longer for one transfer than planning can add up",
                "check its bytes per second and latency");
  return std::llround(ns);
}

}  // namespace

double all_reduce_s(int64_t param_bytes, int replicas, const Link& link) {
  const double r = replicas;
  return r > 1 && link.bytes_per_s > 0 ? 2 * (r - 1) / r * double(param_bytes) / link.bytes_per_s : 0;
}

int64_t work_ns(const NodeCost& cost, double speed) {
  return std::llround(double(std::llround(cost.compute_s() * ns_per_s)) / speed);
}

int64_t work_ns(const Profile& times, int node, double speed) {
  const ProfileNode& its = times.nodes[size_t(node)];
  return its.barred ? barred_ns : work_ns(its.cost, speed);
}

int64_t gradient_ns(int64_t param_bytes, const Link& link, int microbatches) {
  if (link.bytes_per_s <= 0) return 0;
  return round_link_ns(2 * ns_per_s * double(param_bytes) / (link.bytes_per_s * microbatches));
}

int64_t stage_ns(int64_t work_ns, int64_t gradient_ns, int replicas) {
  return of_one_replica(stage_ns_of_all(work_ns, gradient_ns, replicas), replicas);
}

int64_t transfer_ns(int64_t bytes, int tensors, const Link& link) {
  return round_link_ns(2 * ns_per_s * link.seconds(bytes, tensors));
}

int64_t sent_ns(int64_t bytes, const Link& link) { return round_link_ns(ns_per_s * link.seconds(bytes)); }

int64_t held_bytes(const NodeCost& cost) {
  return trained_bytes(cost.param_bytes, cost.slot_bytes()) + cost.frozen_bytes + cost.prepared_bytes;
}

int64_t kept_bytes(const NodeCost& cost) {
  return cost.stash_bytes + (cost.keeps_output ? cost.output_bytes : 0);
}

void StageSum::add(const StageSum& other) {
  barred |= other.barred;
  forward_s += other.forward_s;
  backward_s += other.backward_s;
  update_s += other.update_s;
  backward_input_s += other.backward_input_s;
  late_weight_s += other.late_weight_s;
  param_bytes += other.param_bytes;
  held_bytes += other.held_bytes;
  kept_bytes += other.kept_bytes;
  slot_bytes += other.slot_bytes;
}

StageSum sum_of(const ProfileNode& own, const ProfileNode& times) {
  const NodeCost& cost = own.cost;
  return {.barred = times.barred,
          .forward_s = times.cost.forward_s,
          .backward_s = times.cost.backward_s(),
          .update_s = times.cost.update_s,
          .backward_input_s = times.cost.backward_input_s,
          .late_weight_s = times.cost.late_weight_s(),
          .param_bytes = cost.param_bytes,
          .held_bytes = held_bytes(cost),
          .kept_bytes = kept_bytes(cost),
          .slot_bytes = cost.slot_bytes()};
}

void for_each_shared(const Profile& profile, const std::vector<int>& nodes,
                     const std::function<void(const SharedUse&, bool again)>& visit) {
  std::set<std::string_view> known;
  for (const int n : nodes)
    for (const SharedUse& use : profile.nodes[size_t(n)].shared) visit(use, !known.insert(use.weight).second);
}

int64_t held_once_bytes(const Profile& profile, const std::vector<int>& nodes, bool trains) {
  int64_t bytes = 0;
  for_each_shared(profile, nodes, [&](const SharedUse& use, bool again) {
    if (again) bytes += use.bytes + (trains ? use.slot_bytes : 0);
  });
  return bytes;
}

namespace {

// Corrects the sum of these nodes by what they share. A stage updates copies, too, whose first uses other
// stages have.
void add_shared(StageSum& sum, const Profile& own, const Profile& times, const std::vector<int>& nodes) {
  sum.held_bytes -= held_once_bytes(own, nodes, true);
  for_each_shared(own, nodes, [&](const SharedUse& use, bool again) {
    sum.slot_bytes -= use.slot_bytes;
    const int64_t bytes = own.nodes[size_t(use.first)].cost.param_bytes;
    if (!again && !std::ranges::count(nodes, use.first) && bytes > 0)
      sum.update_s += times.nodes[size_t(use.first)].cost.update_s * double(use.bytes) / double(bytes);
  });
}

}  // namespace

void add_recomputed(StageSum& sum, const WorkingSet& set) {
  sum.backward_s += set.forward_s;
  sum.backward_input_s += set.forward_s;
  sum.kept_bytes = set.kept_bytes;
  sum.again_bytes = set.again_bytes;
}

StageSum sum_of(const Profile& own, const Profile& times, const std::vector<int>& nodes,
                const std::vector<int>& recomputed) {
  StageSum sum{.overhead_s = times.overhead_s};
  for (const int n : nodes) sum.add(sum_of(own.nodes[size_t(n)], times.nodes[size_t(n)]));
  add_shared(sum, own, times, nodes);
  if (!recomputed.empty()) {
    std::vector<bool> again;
    for (const int n : nodes) again.push_back(std::ranges::binary_search(recomputed, n));
    WorkingSet set = working_set(StageOrder(own, own.consumers(), nodes), again);
    set.forward_s = 0;
    for (const int n : recomputed) set.forward_s += times.nodes[size_t(n)].cost.forward_s;
    add_recomputed(sum, set);
  }
  return sum;
}

int64_t memory_bytes(const StageSum& stage, int in_flight, int replicas, bool sharded) {
  return of_one_replica(memory_bytes_of_all(stage, in_flight, replicas, sharded), replicas);
}

int64_t memory_bytes_of_all(const StageSum& stage, int in_flight, int replicas, bool sharded) {
  return replicas * (stage.held_bytes + in_flight * stage.kept_bytes + stage.again_bytes) +
         (replicas - 1) * (stage.param_bytes - (sharded ? stage.slot_bytes : 0));
}

int64_t slots_to_share_out(const ProfileNode& node) {
  int64_t bytes = node.cost.slot_bytes();
  for (const SharedUse& use : node.shared) bytes -= use.slot_bytes;
  return bytes;
}

UpdateTimes update_times(const StageSum& sum, int replicas, const Link& link, bool sharded) {
  UpdateTimes times{.reduce_s = all_reduce_s(sum.param_bytes, replicas, link),
                    .work_s = sum.update_s,
                    .core_share = link.core_share};
  if (sharded && replicas > 1) {
    times.gather_s = times.reduce_s /= 2;
    times.work_s /= replicas;
  }
  return times;
}

int one_f_one_b_in_flight(const PipelinePlace& at) {
  return int(of_one_replica(std::min(at.microbatches, at.devices_left), at.replicas));
}

int all_in_flight(const PipelinePlace& at) { return int(of_one_replica(at.microbatches, at.replicas)); }

}  // namespace antichain
