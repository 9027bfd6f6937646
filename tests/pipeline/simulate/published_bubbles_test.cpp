// Idle times of named schedules: those that their authors published, and the closed forms.
//
// The published rates are of Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024. A rate is idle time
// over time, (T - M (F + I + W)) / T. T is the step for 1f1b and zb-h1. For zb-h2 it is the longest span of a
// rank, from the begin of its first action to the end of its last. A message delays its consumer by c.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

struct EqualStages {
  int ranks = 1, microbatches = 1;
  double forward_s = 0, input_s = 0, weight_s = 0, message_s = 0;
  double busy_s() const { return microbatches * (forward_s + input_s + weight_s); }
};

Timeline timeline_of(const EqualStages& at, const Policy& policy) {
  const Profile network =
      chain(at.ranks,
            {.forward_s = at.forward_s, .backward_input_s = at.input_s, .backward_weight_s = at.weight_s});
  const Plan plan = one_node_each(network);
  return simulate(make_schedule(network, plan, policy, at.microbatches), plan, network,
                  one_link({.latency_s = at.message_s}));
}

struct Published {
  EqualStages at;  // times in microseconds
  double one_f_one_b, h1, h2;
};
constexpr Published published[] = {
    {{8, 24, 18522, 18086, 9337, 601}, .2431, .1585, .1083},
    {{8, 32, 29802, 29428, 19530, 577}, .1898, .1045, .0559},
    {{8, 64, 29935, 29621, 19388, 535}, .1091, .0554, .0294},
    {{16, 48, 11347, 11248, 8132, 377}, .2552, .1397, .0672},
    {{32, 96, 10419, 10207, 7715, 408}, .2646, .1421, .0641},
    {{32, 128, 10408, 10204, 7703, 408}, .2168, .1106, .0490},
};

TEST(PublishedBubbles, AreMet) {
  for (const Published& row : published) {
    SCOPED_TRACE(std::to_string(row.at.ranks) + " ranks, M " + std::to_string(row.at.microbatches));
    const auto rate = [&](double s) { return (s - row.at.busy_s()) / s; };
    EXPECT_NEAR(rate(timeline_of(row.at, policy("1f1b")).step_s), row.one_f_one_b, 1e-4);
    EXPECT_NEAR(rate(timeline_of(row.at, policy("zb-h1")).step_s), row.h1, 1e-4);
    EXPECT_NEAR(rate(timeline_of(row.at, policy("zb-h2")).span_s()), row.h2, 1e-4);
  }
}

// p ranks, messages that take no time: 1F1B idles (p - 1)(F + I + W), ZB-H1 (p - 1)(F + I - W) where W is no
// longer than F and I and M >= p, and a rank of ZB-H2 max(0, (p - 1)(F + I - 2 W)) where M >= 2 p - 1.
TEST(PublishedBubbles, ClosedFormsHold) {
  for (int p = 1; p <= 32; ++p)
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

// In flight, from the begin of a forward to the end of its weight half.
TEST(PublishedBubbles, MemoryIsWithinTheFormulas) {
  for (int p = 1; p <= 32; ++p) {
    const Profile network = chain(p);
    const auto in_flight = [&](const char* name) {
      return peak_in_flight(make_schedule(network, one_node_each(network), policy(name), 2 * p));
    };
    for (int r = 0; r < p; ++r) {
      EXPECT_EQ(in_flight("gpipe")[size_t(r)], 2 * p);
      EXPECT_EQ(in_flight("1f1b")[size_t(r)], p - r);
      EXPECT_EQ(in_flight("zb-h1")[size_t(r)], p);
      EXPECT_EQ(in_flight("zb-h2")[size_t(r)], 2 * p - 1);
    }
  }
}

}  // namespace
}  // namespace antichain::test
