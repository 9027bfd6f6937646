// A scorer remembers cuts and their parts. What it says of them is compared with a scorer that has seen none.
#include "pipeline/planning/cut_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

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
      CutScorer score(profile, options, Policy::one_f_one_b, *some.dag, *some.placements);
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

}  // namespace
}  // namespace antichain::test
