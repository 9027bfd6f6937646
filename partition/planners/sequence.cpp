#include "partition/planners/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "framework/error.h"

namespace antichain {

CutGraph sequence_graph(const Profile& profile, const PlanOptions& options, Method method) {
  check(options, profile);
  if (!options.replicas.off())
    throw Error(fmt::format("the method {} gives every stage one device, but replicas were asked for",
                            name_of(method)),
                "turn replicas off, or choose antichain, pipedream or data-parallel", ExitCode::usage);
  return cut_graph(profile);
}

int sequence_parts(const PlanOptions& options, const CutGraph& graph) {
  return options.at_most ? std::min(options.stages, graph.size()) : options.stages;
}

std::vector<int64_t> running_sums(const std::vector<int64_t>& prices) {
  std::vector<int64_t> sums(prices.size() + 1, 0);
  std::partial_sum(prices.begin(), prices.end(), sums.begin() + 1);
  return sums;
}

// Its antichains are the prefixes of the sequence, the empty one included.
Plan sequence_plan(const Profile& profile, const PlanOptions& options, const std::vector<int>& ends,
                   Method method, std::chrono::steady_clock::time_point start) {
  return finish_plan(profile, options, sequence_stages(profile, ends), method, int64_t(ends.back()) + 1,
                     start);
}

}  // namespace antichain
