// The bound of all plans is below the bound of every single plan, and on a chain it says what unequal stages
// can't reach.
#include "pipeline/planning/round_trip_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "partition/search/antichain_search.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/order_bound.h"
#include "pipeline/planning/planning.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

// Returns the smallest bound (pipeline/planning/order_bound.h) of any cut, with all micro-batches in flight.
double least_order_bound_s(const Profile& profile, const PlanOptions& options, const AntichainDag& dag) {
  StageAdder add(profile);
  const int stages = options.stages;
  const std::vector<int> all(size_t(stages), options.microbatches);
  std::vector<int> devices(static_cast<size_t>(stages));
  std::iota(devices.begin(), devices.end(), 0);
  double least_s = std::numeric_limits<double>::infinity();
  const std::function<void(int, int, std::vector<int>)> cut = [&](int state, int stage, std::vector<int> of) {
    if (stage == stages - 1) {
      for (const int n : dag.down_set(dag.full()))
        if (of[size_t(n)] < 0) of[size_t(n)] = stage;
      const PipelineTimes times =
          pipeline_times(add(of, stages), options.cluster, devices, options.microbatches);
      least_s = std::min(least_s, order_bound_s(OrderEstimate(times), all, Steps::overlapped));
      return;
    }
    for (int next = state + 1; next < dag.full(); ++next) {
      if (!dag.inside(state, next)) continue;
      std::vector<int> longer = of;
      for (const int n : dag.down_set(next))
        if (longer[size_t(n)] < 0) longer[size_t(n)] = stage;
      cut(next, stage + 1, longer);
    }
  };
  cut(dag.empty(), 0, std::vector<int>(profile.nodes.size(), -1));
  return least_s;
}

TEST(RoundTripBound, IsBelowTheBoundOfEveryCut) {
  int sharper = 0, cases = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Profile profile = random_network(random, 6 + int(random() % 5));
    profile.overhead_s = 0.25 * double(random() % 3);
    for (ProfileNode& node : profile.nodes) {
      node.cost.backward_weight_s = double(random() % 5);
      if (node.role != Role::input) node.cost.forward_s += 0.001;  // no node takes no time at all
      node.needs_gradient = node.needs_gradient || (seed % 2 == 0 && node.role != Role::input);
      node.cost.update_s = 0.5 * double(random() % 2);
    }
    const PlanOptions options{.stages = 2 + int(seed % 3), .microbatches = 1 + int(random() % 6)};
    AntichainSearch search(profile, options);
    search.best();
    ASSERT_NE(search.whole(), nullptr);
    if (search.whole()->states() > (options.stages == 4 ? 24 : 60)) continue;
    const double all_s = round_trip_bound_s(profile, options, *search.whole(), 0),
                 least_s = least_order_bound_s(profile, options, *search.whole());
    EXPECT_LE(all_s, least_s * (1 + 1e-9));
    sharper += all_s > 0.98 * least_s;
    ++cases;
  }
  EXPECT_GT(cases, 60);
  EXPECT_GT(sharper, cases / 4) << "it is often as large as it can be";
}

// Nodes that stay together are one node of the search. Here what the second node hands on needs no gradient,
// so no stage before the third waits for one that follows.
TEST(RoundTripBound, IsBelowTheStepWhereGradientsEndWithinNodesThatStayTogether) {
  Profile profile = chain(4, {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1});
  profile.nodes[3].needs_gradient = false;
  profile.nodes[3].cost.backward_input_s = profile.nodes[3].cost.backward_weight_s = 0;
  for (const int microbatches : {1, 2, 8}) {
    const PlanOptions options{.stages = 2, .microbatches = microbatches, .together = {{2, 3}, {4, 5}}};
    const Plan plan = plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
    EXPECT_LE(pace_bound_s(profile, options, false), plan.step_s * (1 + 1e-9));
  }
}

// Stage r of eight equal stages waits 7 − r round trips of 2 between its first forward and its first input
// half, in which it has seven forwards to do. So the first takes 8 x 3 + 14 − 7 = 31 at least, and the last
// is reached and left again in 14 + 8 x 2 + 1 = 31, where all work of a stage is 24.
TEST(RoundTripBound, SaysWhatARankWaitsFor) {
  const Profile profile = chain(8, {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1});
  const PlanOptions options{.stages = 8, .objective = Objective::period, .microbatches = 8};
  EXPECT_NEAR(pace_bound_s(profile, options, true), 31, 31 * 1e-3) << "bisection ends within a thousandth";
  PlanOptions more = options;
  more.microbatches = 64;
  EXPECT_NEAR(pace_bound_s(profile, more, true), 192, 1e-6) << "the load is more than any round trip";
}

}  // namespace
}  // namespace antichain::test
