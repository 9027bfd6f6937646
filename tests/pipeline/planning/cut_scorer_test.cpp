// A scorer remembers cuts and their parts. What it says of them is compared with a scorer that has seen none.
#include "pipeline/planning/cut_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "partition/search/antichain_search.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

TEST(CutScorer, SaysTheSameOfCutsThatItRemembers) {
  std::mt19937 random(21);
  int scored = 0, ruled_out = 0;
  for (int trial = 0; trial < 30; ++trial) {
    SCOPED_TRACE(trial);
    const Profile profile = random_network(random, 6 + int(random() % 10));
    const PlanOptions options{.stages = 2 + int(random() % 3),
                              .cluster = one_link({.bytes_per_s = 200, .latency_s = 0.1}),
                              .objective = Objective::compute,
                              .microbatches = 6};
    AntichainSearch search(profile, options);
    const Solution some = search.best();
    const auto scorer = [&] {
      CutScorer score(profile, options, Policy::one_f_one_b, *some.dag, *some.placements, search.fitter());
      score(some.cuts);  // makes the estimate for these placements, which counts as spent, too
      return score;
    };
    CutScorer remembers = scorer();
    const double best_s = remembers(some.cuts)->step_s;
    Cuts cuts = some.cuts;
    for (int i = 0; i < 200; ++i) {  // so few down-sets that most cuts come again
      for (size_t b = 1; b + 1 < cuts.states.size(); ++b)
        cuts.states[b] = 1 + int(random() % uint32_t(some.dag->states() - 1));
      std::ranges::sort(cuts.states);
      const double limit_s = i % 2 ? best_s * 1.1 : std::numeric_limits<double>::infinity();
      CutScorer forgets = scorer();
      const int64_t spent = forgets.spent() - remembers.spent();
      const std::optional<Score> fresh = forgets(cuts, limit_s), known = remembers(cuts, limit_s);
      EXPECT_EQ(forgets.spent() - remembers.spent(), spent);
      ASSERT_EQ(known.has_value(), fresh.has_value());
      if (!known) {
        ++ruled_out;
        continue;
      }
      ++scored;
      EXPECT_EQ(known->step_s, fresh->step_s);
      EXPECT_EQ(known->slowest_s, fresh->slowest_s);
      EXPECT_EQ(known->strain, fresh->strain);
      EXPECT_EQ(known->bytes, fresh->bytes);
    }
  }
  EXPECT_GT(scored, 1000);
  EXPECT_GT(ruled_out, 1000);
}

// Where each node uses all before it, a cut parts many more edges than there are nodes. Searches end sooner
// by as much as it takes to look at these.
TEST(CutScorer, CountsTheEdgesThatItLooksAt) {
  constexpr int nodes = 200;
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  for (int n = 1; n <= nodes; ++n) {
    std::vector<int> inputs(size_t(std::max(n - 1, 1)));
    std::iota(inputs.begin(), inputs.end(), n > 1 ? 1 : 0);
    profile.nodes.push_back(node("n" + std::to_string(n), n < nodes ? Role::compute : Role::loss, inputs,
                                 true, {.forward_s = 1, .backward_input_s = 1, .output_bytes = 1}));
  }
  const PlanOptions options{.stages = 2, .objective = Objective::compute, .microbatches = 4};
  AntichainSearch search(profile, options);
  const Solution even = search.best();
  CutScorer score(profile, options, Policy::one_f_one_b, *even.dag, *even.placements, search.fitter());
  for (const char* again : {"new", "remembered"}) {
    const int64_t before = score.spent();
    ASSERT_TRUE(score(even.cuts));
    EXPECT_GT(score.spent() - before, nodes / 2 * (nodes / 2)) << again;
  }
}

}  // namespace
}  // namespace antichain::test
