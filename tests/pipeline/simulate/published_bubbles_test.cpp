// Named schedules have the idle times that their authors published, and the closed forms.
//
// The published rates are of Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024. A rate is idle time
// over time, (T - M (F + I + W)) / T. T is the step for 1f1b, interleaved and zb-h1. For zb-h2 and zb-v it is
// the longest span of a rank, from the beginning of its first action to the end of its last. A message delays
// its consumer by c.
//
// The other figures are of Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, and of
// DeepSeek-AI's repository DualPipe, 2025.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

struct EqualStages {
  int ranks = 1, microbatches = 1;
  double forward_s = 0, input_s = 0, weight_s = 0, message_s = 0;
  double busy_s() const { return microbatches * (forward_s + input_s + weight_s); }
};

// Each rank's share of the network in one stage, or in as many equal stages as the policy gives it.
struct EqualRanks : ChainOfRanks {
  EqualRanks(const EqualStages& at, const Policy& policy, int chunks)
      : ChainOfRanks(policy, at.ranks,
                     {.forward_s = at.forward_s / chunks,
                      .backward_input_s = at.input_s / chunks,
                      .backward_weight_s = at.weight_s / chunks}) {}
};

Timeline timeline_of(const EqualStages& at, const Policy& policy) {
  const EqualRanks of(at, policy, chunks_of(policy));
  return simulate(make_schedule(of.profile, of.plan, policy, at.microbatches), of.plan, of.profile,
                  one_link({.latency_s = at.message_s}));
}

struct Published {
  EqualStages at;  // times in microseconds
  int layers;      // one a chunk, in the interleaved schedule
  double one_f_one_b, interleaved, h1, h2;
  // This is the step of our simulator, which charges every message.
  double interleaved_with_all_messages;
  double zb_1p;  // found by the authors' search in the memory of 1F1B
  double zb_v;   // ours, in the same memory
};
constexpr Published published[] = {
    {{8, 24, 18522, 18086, 9337, 601}, 24, .2431, .1055, .1585, .1083, .1090, .1585, .0728},
    {{8, 32, 29802, 29428, 19530, 577}, 32, .1898, .0628, .1045, .0559, .0644, .1045, .0358},
    {{8, 64, 29935, 29621, 19388, 535}, 32, .1091, .0320, .0554, .0294, .0328, .0554, .0183},
    {{16, 48, 11347, 11248, 8132, 377}, 48, .2552, .1104, .1397, .0672, .1136, .1397, .0518},
    {{32, 96, 10419, 10207, 7715, 408}, 64, .2646, .1493, .1421, .0641, .1528, .1421, .0541},
    {{32, 128, 10408, 10204, 7703, 408}, 64, .2168, .1164, .1106, .0490, .1192, .1106, .0412},
};

TEST(PublishedBubbles, AreMet) {
  for (const Published& row : published) {
    SCOPED_TRACE(std::to_string(row.at.ranks) + " ranks, M " + std::to_string(row.at.microbatches));
    const auto rate = [&](double s) { return (s - row.at.busy_s()) / s; };
    EXPECT_NEAR(rate(timeline_of(row.at, policy("1f1b")).step_s), row.one_f_one_b, 1e-4);
    EXPECT_NEAR(rate(timeline_of(row.at, policy("zb-h1")).step_s), row.h1, 1e-4);
    EXPECT_NEAR(rate(timeline_of(row.at, policy("zb-h2")).span_s()), row.h2, 1e-4);
    EXPECT_NEAR(rate(timeline_of(row.at, policy("zb-v")).span_s()), row.zb_v, 1e-4);
    EXPECT_LT(row.zb_v, row.zb_1p);
  }
}

// Computes the step of the interleaved schedule, action by action. `wraps_always` says whether messages from
// the last rank to the first, and back, delay every micro-batch; the authors let them delay only the first of
// a group.
double interleaved_step_s(const EqualStages& at, int chunks, bool wraps_always) {
  const int p = at.ranks, stages = p * chunks;
  std::vector<std::vector<int>> ranks;
  for (int s = 0; s < stages; ++s) ranks.push_back({s % p});
  const ComputeOrders orders = policy("interleaved").compute_orders(seats(ranks, at.microbatches));
  std::map<std::tuple<bool, int, int>, double> ended;  // forward or not, stage, micro-batch
  // Returns when what the action needs has arrived, or a negative time when it has not been computed.
  const auto arrival_s = [&](const Action& a) {
    const bool forward = a.verb == Verb::forward, loss = !forward && a.stage + 1 == stages;
    if (forward && a.stage == 0) return 0.;
    const int from = forward ? a.stage - 1 : loss ? a.stage : a.stage + 1;
    const bool wraps = !loss && (forward ? a.stage : from) % p == 0;
    if (wraps && !wraps_always && a.microbatch % p != 0) return 0.;
    const auto found = ended.find({forward || loss, from, a.microbatch});
    return found == ended.end() ? -1. : found->second + (loss ? 0 : at.message_s);
  };
  std::vector<double> now_s(orders.size(), 0);
  std::vector<size_t> next(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < orders.size(); ++r)
      for (; next[r] < orders[r].actions.size(); ++next[r], moved = true) {
        const Action& a = orders[r].actions[next[r]];
        const double there_s = arrival_s(a);
        if (there_s < 0) break;
        const bool forward = a.verb == Verb::forward;
        now_s[r] = std::max(now_s[r], there_s) +
                   (forward ? at.forward_s : at.input_s + at.weight_s) / double(chunks);
        ended[{forward, a.stage, a.microbatch}] = now_s[r];
      }
  }
  return *std::ranges::max_element(now_s);
}

TEST(PublishedBubbles, OfTheInterleavedScheduleAreMet) {
  for (const Published& row : published) {
    SCOPED_TRACE(std::to_string(row.at.ranks) + " ranks, M " + std::to_string(row.at.microbatches));
    const auto rate = [&](double s) { return (s - row.at.busy_s()) / s; };
    const int chunks = row.layers / row.at.ranks;
    EXPECT_NEAR(rate(interleaved_step_s(row.at, chunks, false)), row.interleaved, 1e-4);
    const double all_s = interleaved_step_s(row.at, chunks, true);
    EXPECT_NEAR(rate(all_s), row.interleaved_with_all_messages, 1e-4);
    const Profile profile = chain(row.layers, {.forward_s = row.at.forward_s / chunks,
                                               .backward_input_s = row.at.input_s / chunks,
                                               .backward_weight_s = row.at.weight_s / chunks});
    std::vector<int> ranks;
    for (int s = 0; s < row.layers; ++s) ranks.push_back(s % row.at.ranks);
    EXPECT_NEAR(step_s(profile, one_node_each(profile, ranks), policy("interleaved"), row.at.microbatches,
                       one_link({.latency_s = row.at.message_s})),
                all_s, 1e-6 * all_s);
  }
}

constexpr int numbers_of_ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32};

// p ranks, messages that take no time: 1F1B idles (p - 1)(F + I + W), ZB-H1 (p - 1)(F + I - W) where W is no
// longer than F and I and M >= p, and a rank of ZB-H2 max(0, (p - 1)(F + I - 2 W)) where M >= 2 p - 1.
TEST(PublishedBubbles, ClosedFormsHold) {
  for (const int p : numbers_of_ranks)
    for (const auto& [f, i, w] : {std::tuple(1, 1, 1), {3, 2, 1}, {4, 5, 4}, {7, 6, 5}}) {
      SCOPED_TRACE(std::to_string(p) + " ranks, F " + std::to_string(f));
      for (const int m : {p, 2 * p - 1, 2 * p + 3}) {
        const EqualStages at{p, m, double(f), double(i), double(w)};
        EXPECT_DOUBLE_EQ(timeline_of(at, policy("1f1b")).step_s, at.busy_s() + (p - 1) * (f + i + w));
        EXPECT_DOUBLE_EQ(timeline_of(at, policy("zb-h1")).step_s, at.busy_s() + (p - 1) * (f + i - w));
        if (m >= 2 * p - 1) {
          EXPECT_DOUBLE_EQ(timeline_of(at, policy("zb-h2")).span_s(),
                           at.busy_s() + std::max(0, (p - 1) * (f + i - 2 * w)));
        }
      }
    }
}

double span_s(const EqualStages& at, const char* name) { return timeline_of(at, policy(name)).span_s(); }
double step_of(const EqualStages& at, const char* name) { return timeline_of(at, policy(name)).step_s; }

// Interleaved 1F1B idles 1F1B's time over the number of chunks.
TEST(PublishedBubbles, ClosedFormsHoldWithSeveralStagesARank) {
  for (const int p : numbers_of_ranks) {
    SCOPED_TRACE(std::to_string(p) + " ranks");
    for (const auto& [f, i, w] : {std::tuple(2, 2, 2), {6, 4, 2}, {8, 10, 8}}) {
      const EqualStages at{p, 2 * p, double(f), double(i), double(w)};
      EXPECT_NEAR(step_of(at, "interleaved"), at.busy_s() + (p - 1) * (f + i + w) / 2., 1e-9 * at.busy_s());
    }
    for (const int m : {2 * p, 2 * p + 1, 3 * p + 2}) {
      const EqualStages at{p, m, 2, 2, 2};
      EXPECT_DOUBLE_EQ(span_s(at, "zb-v"), at.busy_s()) << "no rank waits";
    }
  }
}

// Half of 1F1B's idle time, and two thirds of it and a term that does not grow with the micro-batches.
TEST(PublishedBubbles, VHalfAndVMinAreAsTheirDefinitionsSay) {
  for (int p = 2; p <= 32; ++p) {
    const auto share = [&](const char* name, int m) {
      const EqualStages at{p, m, 2, 2, 2};
      return (step_of(at, name) - at.busy_s()) / (step_of(at, "1f1b") - at.busy_s());
    };
    SCOPED_TRACE(std::to_string(p) + " ranks");
    EXPECT_LE(share("v-half", 2 * p), 0.5 + 1e-9);
    EXPECT_LE(share("v-min", 2 * p), p < 16 ? 0.76 : 0.70);
    EXPECT_NEAR(share("v-min", 4 * p), share("v-min", 2 * p), 1e-9);
  }
}

// DualPipeV idles (PP / 2 - 1)(F&B + B - 3 W) on PP = 2 p chunks, where a forward takes as long as an input
// half and no less than a weight half.
TEST(PublishedBubbles, DualPipeVIdlesAsPublished) {
  for (const int p : {2, 4, 8, 16})
    for (const int m : {2 * p, 2 * p + 1, 4 * p})
      for (const double w : {1., 0.5}) {
        SCOPED_TRACE(std::to_string(p) + " ranks, M " + std::to_string(m));
        const EqualStages at{p, m, 2, 2, 2 * w};
        const double f = 1, b = 1 + w;
        EXPECT_NEAR(step_of(at, "dualpipe-v") - at.busy_s(), (p - 1) * (f + b + b - 3 * w), 1e-9 * m);
        const ChainOfRanks of(policy("dualpipe-v"), p);
        const std::vector<double> alive =
            peak_in_flight(make_schedule(of.profile, of.plan, policy("dualpipe-v"), m));
        EXPECT_EQ(*std::ranges::max_element(alive), (2 * p + 1) / 2.);
      }
}

// Counts what is in flight from the beginning of a forward to the end of its weight half.
TEST(PublishedBubbles, MemoryIsWithinTheFormulas) {
  for (int p = 1; p <= 32; ++p) {
    SCOPED_TRACE(std::to_string(p) + " ranks");
    const auto in_flight = [&](const char* name) {
      const ChainOfRanks of(policy(name), p);
      return peak_in_flight(make_schedule(of.profile, of.plan, policy(name), 2 * p));
    };
    const auto most = [&](const char* name) {
      const std::vector<double> of_rank = in_flight(name);
      return *std::ranges::max_element(of_rank);
    };
    const std::vector<double> on_every_rank(size_t(p), p);
    EXPECT_EQ(in_flight("zb-h1"), on_every_rank);
    EXPECT_EQ(in_flight("zb-v"), on_every_rank);
    EXPECT_EQ(in_flight("gpipe"), std::vector<double>(size_t(p), 2 * p));
    EXPECT_EQ(in_flight("zb-h2"), std::vector<double>(size_t(p), 2 * p - 1));
    const std::vector<double> of_1f1b = in_flight("1f1b");
    for (int r = 0; r < p; ++r) EXPECT_EQ(of_1f1b[size_t(r)], p - r);
    EXPECT_EQ(most("interleaved"), p + (p - 1) / 2.);
    EXPECT_LE(most("v-half"), (p + 2) / 2);
    EXPECT_LE(most("v-min"), (p + 4) / 3);
  }
}

}  // namespace
}  // namespace antichain::test
