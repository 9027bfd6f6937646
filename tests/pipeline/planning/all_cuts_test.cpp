// A search of all cuts is a proof where it ends, and gives up early where it would not.
#include "pipeline/planning/all_cuts.h"

#include <gtest/gtest.h>

#include "partition/search/antichain_search.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

constexpr int64_t budget = 600'000;

struct Searched {
  bool proved = false;
  int64_t spent = 0;
};

Searched search_all(int nodes, int stages) {
  std::mt19937 random(3);
  Profile profile = chain(nodes);
  for (ProfileNode& node : profile.nodes)
    if (node.role != Role::input) node.cost = {.forward_s = 1.0 + double(random() % 9), .output_bytes = 1};
  const PlanOptions options{.stages = stages, .objective = Objective::compute, .microbatches = 8};
  AntichainSearch search(profile, options);
  const Solution some = search.best();
  CutScorer score(profile, options, Policy::one_f_one_b, *some.dag, *some.placements, search.fitter());
  ScoredCuts best{some.cuts, *score(some.cuts)};
  const int64_t before = score.spent();
  const bool proved = AllCuts(profile, options, *some.dag, true, some.cuts.moves).search(score, best, budget);
  return {proved, score.spent() - before};
}

TEST(AllCuts, IsAProofWhereTheCutsAreFew) { EXPECT_TRUE(search_all(40, 3).proved); }

TEST(AllCuts, GivesUpEarlyWhereMostCutsWouldBeLeft) {
  const Searched searched = search_all(120, 8);
  EXPECT_FALSE(searched.proved);
  EXPECT_LT(searched.spent, budget / 5);
}

}  // namespace
}  // namespace antichain::test
