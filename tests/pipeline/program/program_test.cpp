// Rings have golden numbers of copies, and meet their definition on random schedules: a copy may be written
// again when this rank's last use of it is over and holding back a peer's recv of it would hold back the
// write, too.
#include "pipeline/program/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/only.h"

namespace antichain::test {
namespace {

const NodeCost cost_of_all{.forward_s = 1,
                           .backward_input_s = 1,
                           .backward_weight_s = 1,
                           .output_bytes = 8,
                           .param_bytes = 4,
                           .stash_bytes = 2,
                           .keeps_output = true};

// Returns how many copies a rank's only stage has of what is of this kind, of its largest ring; 0 for none.
int copies(const RankProgram& rank, Content content, int node = -1) {
  int most = 0;
  for (const Buffer& buffer : rank.buffers)
    if (!buffer.passing && buffer.content == content && (node < 0 || buffer.node == node))
      most = std::max(most, buffer.copies);
  return most;
}

struct Rings {
  int outputs = 0, stash = 0, received = 0, sent_gradients = 0;
  bool operator==(const Rings&) const = default;
};
void PrintTo(const Rings& r, std::ostream* out) {
  *out << r.outputs << " " << r.stash << " " << r.received << " " << r.sent_gradients;
}

std::vector<Rings> rings_of_chain(int stages, const Policy& policy, int microbatches, bool rereads = true) {
  NodeCost cost = cost_of_all;
  cost.keeps_output = rereads;
  const Profile profile = chain(stages, cost);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
  const Program program = compile(schedule, profile, plan);
  std::vector<Rings> all;
  for (const RankProgram& rank : program.ranks)
    all.push_back({copies(rank, Content::output), copies(rank, Content::stash),
                   copies(rank, Content::received), copies(rank, Content::gradient)});
  return all;
}

// Stage s knows that stage s + 1 has activation m when gradient m is back, which is before its forward m + (S
// − s). It knows that stage s − 1 has gradient m when activation m + (S − s + 1) arrives; in the drain none
// arrives any more, so that the last S − s + 1 gradients need copies of their own. What is received has one
// copy more.
TEST(Rings, OneForwardOneBackward) {
  EXPECT_EQ(rings_of_chain(4, Policy::one_f_one_b, 8),
            (std::vector<Rings>{{4, 4, 2, 0}, {3, 3, 4, 4}, {2, 2, 3, 3}, {1, 1, 2, 2}}));
}

// What no backward reads again is only kept until it is sent, and a received activation until its forward.
TEST(Rings, WithoutBackwardsThatReadAgain) {
  EXPECT_EQ(rings_of_chain(4, Policy::one_f_one_b, 8, false),
            (std::vector<Rings>{{4, 4, 2, 0}, {3, 3, 2, 4}, {2, 2, 2, 3}, {0, 1, 2, 2}}));
}

TEST(Rings, GpipeHasACopyForEachMicrobatch) {
  EXPECT_EQ(rings_of_chain(3, Policy::gpipe, 8),
            (std::vector<Rings>{{8, 8, 2, 0}, {8, 8, 8, 8}, {8, 8, 8, 8}}));
}

// Nothing comes back in evaluation, so nothing is ever proved: what is sent has M copies.
TEST(Rings, Evaluation) {
  EXPECT_EQ(rings_of_chain(3, Policy::forward_only, 6),
            (std::vector<Rings>{{6, 0, 0, 0}, {6, 0, 2, 0}, {0, 0, 2, 0}}));
}

TEST(Rings, GradientsAreHeldForTheirWeightHalf) {
  const Profile profile = chain(1, cost_of_all);
  const Plan plan = one_node_each(profile);
  const auto held = [&](const std::string& order) {
    const Schedule schedule = parse_schedule("microbatches 3\nrank 0: " + order + "\n", "text");
    validate(schedule, profile, plan);
    const Program program = compile(schedule, profile, plan);
    return std::pair(copies(program.ranks[0], Content::stash), copies(program.ranks[0], Content::input));
  };
  EXPECT_EQ(held("0L0 0F0 0L1 0F1 0I0 0I1 0L2 0F2 0W0 0I2 0W1 0W2 0U"), std::pair(3, 3));
  EXPECT_EQ(held("0L0 0F0 0B0 0L1 0F1 0B1 0L2 0F2 0B2 0U"), std::pair(1, 1));
}

TEST(Rings, AFeedThatIsAheadHasACopyMore) {
  const Profile profile = chain(1, cost_of_all);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 3);
  const Program program =
      compile(schedule, profile, plan, step_network(profile), Mode::train, Feed::one_ahead);
  EXPECT_EQ(copies(program.ranks[0], Content::input), 2);
}

// Takes the peer's recv and everything after it away: what can no longer be reached certainly happens after
// it.
bool certainly_after(const Schedule& schedule, int peer, int recv_index, int rank, int index) {
  Schedule held_back = schedule;
  held_back.ranks[size_t(peer)].resize(size_t(recv_index));
  return walk(held_back, match_messages(held_back), [](int, int) {})[size_t(rank)] <= index;
}

bool names(std::span<const BufferId> buffers, BufferId buffer) {
  return std::ranges::find(buffers, buffer) != buffers.end();
}

// Returns whether k copies of the buffer are safe to use in turn.
bool safe(const Program& program, const Partners& partners, int rank, BufferId id, int k) {
  const std::vector<Instruction>& list = program.ranks[size_t(rank)].instructions;
  const Buffer& buffer = program.ranks[size_t(rank)].buffers[size_t(id)];
  for (size_t write = 0; write < list.size(); ++write)
    for (size_t use = 0; use < list.size(); ++use) {
      const Instruction &later = list[write], &earlier = list[use];
      if (!names(later.writes, id) || (!names(earlier.reads, id) && !names(earlier.writes, id))) continue;
      const int turns = (later.microbatch - earlier.microbatch) / buffer.replicas;
      if (later.microbatch < 0 || turns <= 0 || turns % k != 0) continue;
      if (use > write) return false;
      const int recv = partners.of[size_t(rank)][use];
      if (earlier.verb == Verb::send &&
          !certainly_after(*program.schedule, earlier.peer, recv, rank, int(write)))
        return false;
    }
  return true;
}

void expect_fewest(const Schedule& schedule, const Profile& profile, const Plan& plan, int& below_all) {
  const Program program = compile(schedule, profile, plan);
  const Partners partners = match_messages(schedule);
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (BufferId id = 0; id < int(program.ranks[r].buffers.size()); ++id) {
      const Buffer& buffer = program.ranks[r].buffers[size_t(id)];
      if (buffer.passing || buffer.content == Content::statistics) continue;
      const int all = program.ranks[r].seats.front().count();
      const int spare = buffer.content == Content::received && buffer.copies < all ? 1 : 0;
      EXPECT_TRUE(safe(program, partners, int(r), id, buffer.copies));
      if (const int fewer = buffer.copies - spare - 1; fewer > 0 && buffer.content != Content::received) {
        EXPECT_FALSE(safe(program, partners, int(r), id, fewer));
      }
      below_all += buffer.copies < all;
    }
}

TEST(Rings, AreTheFewestThatAreSafe) {
  std::mt19937 random(3);
  int below_all = 0;
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    Profile profile = random_network(random, 4 + int(random() % 6));
    for (ProfileNode& node : profile.nodes) {
      node.cost.keeps_output = node.role != Role::input && random() % 2;
      node.cost.stash_bytes = 4;
    }
    const Policy& policy = trial % 3 ? Policy::one_f_one_b : Policy::gpipe;
    Plan plan = random_plan(random, profile, 2 + int(random() % 3));
    if (trial % 2) plan = randomly_replicated(random, plan, 3);
    expect_fewest(make_schedule(profile, plan, policy, 4 + int(random() % 4)), profile, plan, below_all);
  }
  EXPECT_GT(below_all, 50);
}

// A receive is posted when the copy's last use is over, which is before it is awaited.
TEST(Rings, ReceivesArePostedAheadButNotTooEarly) {
  for (const Policy& policy : policies_with_replicas()) {
    const Profile profile = chain(4, cost_of_all);
    const Plan plan = one_node_each(profile);
    const Schedule schedule = make_schedule(profile, plan, policy, 9);
    const Program program = compile(schedule, profile, plan);
    for (const RankProgram& rank : program.ranks)
      for (size_t i = 0; i < rank.instructions.size(); ++i) {
        const Instruction& recv = rank.instructions[i];
        if (recv.verb != Verb::recv) continue;
        const BufferId id = recv.writes.front();
        const int copies = rank.buffers[size_t(id)].copies;
        ASSERT_LT(recv.freed_by, int(i));
        EXPECT_EQ(recv.freed_by < 0, recv.microbatch < copies);
        for (int k = recv.freed_by + 1; k < int(i); ++k)
          if (names(rank.instructions[size_t(k)].reads, id)) {
            EXPECT_NE(rank.instructions[size_t(k)].microbatch % copies, recv.microbatch % copies);
          }
      }
  }
}

TEST(Program, IsPrintedWithItsOperands) {
  NodeCost cost = cost_of_all;
  cost.keeps_output = false;
  const Profile profile = chain(2, cost);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
  const std::string text = print(compile(schedule, profile, plan), step_network(profile));
  EXPECT_EQ(text.substr(text.find("rank 1")),
            "rank 1\n"
            "  1L0  writes label[0]\n"
            "  1R0:a2<0  writes n1[0]\n"
            "  1F0  reads label[0] n1[0]  writes n2.stash[0]\n"
            "  1L1  writes label[1]\n"
            "  1R1:a2<0  writes n1[1]\n"
            "  1F1  reads label[1] n1[1]  writes n2.stash[1]\n"
            "  1B0  reads label[0] n2.stash[0]  writes n1.gradient[0]\n"
            "  1S0:g2.3>0  reads n1.gradient[0]\n"
            "  1B1  reads label[1] n2.stash[1]  writes n1.gradient[1]\n"
            "  1S1:g2.3>0  reads n1.gradient[1]\n"
            "  1U\n")
      << text;
}

}  // namespace
}  // namespace antichain::test
