// This planner balances arithmetic: it finds the contiguous split, in graph order, whose busiest device has
// the fewest FLOPs to do for its speed (hashrate_mp in the literature; here the split is optimal). It needs
// no measured time, only the network and what the devices are said to be capable of. It misjudges operators
// that wait for memory rather than compute.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "framework/error.h"
#include "partition/planners/balanced_sequence.h"
#include "partition/planners/sequence.h"

namespace antichain {
namespace {

// FLOPs are whole numbers, so that what lies between two nodes is an exact difference.
std::vector<int64_t> flops_before(const Profile& profile, const CutGraph& graph) {
  std::vector<int64_t> flops;
  double total = 0;
  for (const std::vector<int>& nodes : graph.nodes) {
    const double forward = profile.nodes[nodes[0]].cost.flops;
    total += forward;
    if (!(forward >= 0 && total < 0x1p62))
      throw Error(fmt::format("node {} takes {} FLOPs, which no plan can add up",
                              profile.nodes[nodes[0]].name, forward),
                  "check its flops in the profile");
    flops.push_back(std::llround(forward));
  }
  std::vector<int64_t> before = running_sums(flops);
  if (before.back() == 0)
    throw Error(fmt::format("the profile of {} has no FLOPs that hashrate could balance", profile.model),
                "give a profile with flops, or choose a method that goes by time");
  return before;
}

}  // namespace

Plan plan_hashrate(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CutGraph graph = sequence_graph(profile, options, Method::hashrate);
  const std::vector<int64_t> before = flops_before(profile, graph);
  auto load = [&](int s, int begin, int end) {
    return double(before[end] - before[begin]) / options.cluster.device(s).speed;
  };
  const std::vector<int> ends = balanced_sequence(graph.size(), sequence_parts(options, graph), load);
  return sequence_plan(profile, options, ends, Method::hashrate, start);
}

}  // namespace antichain
