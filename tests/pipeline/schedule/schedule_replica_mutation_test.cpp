// Every way in which a turn or an all-reduce of replicas may be wrong is refused, by its name.
#include <gtest/gtest.h>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/schedule/mutations.h"

namespace antichain::test {
namespace {

class ReplicaMutation : public ::testing::Test {
 protected:
  const Profile profile = chain(2);
  const Plan plan = replicated(one_node_each(profile), {2, 1});
  const Schedule good = make_schedule(profile, plan, Policy::one_f_one_b, 4);

  // On the line of a rank.
  void refused(int rank, const std::string& from, const std::string& to,
               std::initializer_list<std::string> words) const {
    expect_refused({profile, plan, good}, fmt::format("rank {}:", rank), from, to, words);
  }
};

TEST_F(ReplicaMutation, AnAllReduceThatAReplicaMisses) {
  refused(0, " 0A", "", {"rank 0", "0A", "missing", "every replica"});
  refused(1, " 0A", "", {"rank 1", "0A", "missing", "every replica"});
}

TEST_F(ReplicaMutation, AnAllReduceTooEarlyTooLateTwiceOrOfNobody) {
  refused(1, "0B3 0A", "0A 0B3", {"rank 1", "0A", "before 0B3"});
  refused(0, "0A 0U", "0U 0A", {"rank 0", "0U", "before 0A"});
  refused(0, "0A", "0A 0A", {"rank 0", "0A", "twice"});
  refused(2, "1U", "1A 1U", {"rank 2", "1A", "one rank"});
  refused(2, "1U", "0A 1U", {"rank 2", "0A", "belongs to rank 0 or 1"});
}

// Three nodes of 300 kB a stage: three buckets.
TEST(BucketMutation, AnAllReduceOfABucketThatIsMissingTwiceOutOfOrderOrNoBucket) {
  const Profile profile = chain(4, {.forward_s = 1, .backward_input_s = 1, .param_bytes = 300'000});
  const Plan plan = replicated(plan_of(profile, {{2, 3, 4}, {5}}), {2, 1});
  const Schedule good = make_schedule(profile, plan, Policy::one_f_one_b, 4);
  ASSERT_NE(print(good).find("0B3 0A0 0A1 0A2 0U"), std::string::npos) << print(good);
  const auto refused = [&](int rank, const std::string& from, const std::string& to,
                           std::initializer_list<std::string> words) {
    expect_refused({profile, plan, good}, fmt::format("rank {}:", rank), from, to, words);
  };
  refused(0, " 0A1", "", {"rank 0", "0A1", "missing", "every replica"});
  refused(1, " 0A0 0A1 0A2", "", {"rank 1", "0A0", "missing", "every replica"});
  refused(1, " 0A2", "", {"rank 1", "0A2", "missing", "every replica"});
  refused(0, "0A1", "0A1 0A1", {"rank 0", "0A1", "twice"});
  refused(1, "0A0 0A1", "0A1 0A0", {"rank 1", "0A1", "before 0A0"});
  refused(0, "0A1 0A2 0U", "0A1 0U 0A2", {"rank 0", "0U", "before 0A2"});
  refused(1, "0B3 0A0", "0A0 0B3", {"rank 1", "0A0", "before 0B3"});
  refused(1, "0A2", "0A2 0A3", {"rank 1", "0A3", "names no bucket", "3 at most"});
  refused(1, "0A0", "0A 0A0", {"rank 1", "0A ", "beside buckets", "added up twice"});
  // Fewer buckets are as good, if all replicas have them.
  Schedule fewer = good;
  for (const int rank : {0, 1})
    std::erase(fewer.ranks[size_t(rank)], Action{.verb = Verb::reduce, .bucket = 2});
  validate(fewer, profile, plan);
  Swaps swaps;
  mutate_every_action({profile, plan, good}, swaps);
  EXPECT_GT(swaps.refused, 10);
}

TEST_F(ReplicaMutation, AMicrobatchOnTheWrongReplica) {
  refused(0, "0L2 0F2", "0L3 0F3", {"rank 0", "0L3", "belongs to rank 1"});
  refused(1, " 0B3", " 0B3 0B2", {"rank 1", "0B2", "belongs to rank 0"});
  refused(0, "0F2 ", "", {"rank 0", "0F2", "missing"});
  refused(1, "0F3 ", "0F3 0F3 ", {"rank 1", "0F3", "twice"});
}

TEST_F(ReplicaMutation, AMessageToTheWrongReplica) {
  refused(2, "1S2:g2.3>0", "1S2:g2.3>1", {"rank 2", "1S2:g2.3>1", "does not ask for"});
  refused(2, "1R1:a2<1", "1R1:a2<0", {"rank 2", "1R1:a2<0", "does not ask for"});
}

TEST_F(ReplicaMutation, MicrobatchesOutOfOrderOnOneReplica) {
  refused(1, "0L1 0F1 0S1:a2>2 0L3 0F3 0S3:a2>2", "0L3 0F3 0S3:a2>2 0L1 0F1 0S1:a2>2",
          {"rank 1", "0F3", "before 0F1", "order"});
}

TEST_F(ReplicaMutation, AnAllReduceInEvaluation) {
  Schedule schedule = make_schedule(profile, plan, Policy::forward_only, 2);
  for (int rank : {0, 1}) schedule.ranks[rank].push_back({Verb::reduce, 0});
  expect_error([&] { validate(schedule, profile, plan); }, {"0B0", "missing"});
}

TEST_F(ReplicaMutation, Deadlock) {
  // Nobody validates this: one replica is not there.
  const Schedule schedule =
      parse_schedule("microbatches 2\nrank 0: 0A 0S0:a2>1\nrank 1: 0R0:a2<0 0A\n", "text");
  const auto reached = walk(schedule, match_messages(schedule), [](int, int) {});
  expect_error([&] { check_all_reached(schedule, reached); },
               {"deadlock", "rank 0 waits forever in 0A", "rank 1 waits forever in 0R0:a2<0"});
}

TEST(ReplicaMutations, AnyOneActionOfRandomSchedules) {
  std::mt19937 random(13);
  Swaps swaps;
  for (int trial = 0; trial < 12; ++trial) {
    const Profile profile = random_network(random, 5);
    const Plan plan = randomly_replicated(random, random_plan(random, profile, 2), 3);
    const Policy policy = trial % 2 ? Policy::one_f_one_b : Policy::gpipe;
    mutate_every_action({profile, plan, make_schedule(profile, plan, policy, 3 + trial % 3)}, swaps);
  }
  EXPECT_GT(swaps.refused, 100);
  EXPECT_GT(swaps.harmless, 50);
}

}  // namespace
}  // namespace antichain::test
