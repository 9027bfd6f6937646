// Tests that a fast way of the CUDA engine (framework/cuda/fast.h) gives the bits of the plain way that it
// replaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "framework/bf16.h"
#include "layers/cpu/backend.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/running_statistics.h"

namespace antichain::harness {
namespace {

constexpr const char* variable = "ANTICHAIN_CUDA_FAST";
constexpr std::string_view with_fast_ways[] = {"batch_norm", "layer_norm", "layer_scale"};

class FastWays : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (GetParam().backend == "cpu") GTEST_SKIP() << "the CPU engine has no fast ways";
    std::string why;
    engine_ = find(GetParam(), why);
    if (!engine_) GTEST_SKIP() << why;
    if (const char* said = std::getenv(variable)) before_ = said;
  }
  void TearDown() override {
    before_.empty() ? ::unsetenv(variable) : ::setenv(variable, before_.c_str(), 1);
  }

  Results with(const char* ways, const OpCase& c, const Values& values, Ask ask) const {
    ::setenv(variable, ways, 1);
    ask.precision = GetParam().precision;
    return run(*engine_, c, values, ask);
  }

  const Backend* engine_ = nullptr;
  std::string before_;
};

TEST_P(FastWays, GiveTheBitsOfThePlainOnes) {
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (std::ranges::find(with_fast_ways, c.op->type()) == std::end(with_fast_ways)) continue;
    if (!carries_out(*engine_, c)) continue;
    SCOPED_TRACE(c.name);
    Values values = draw(c);
    if (GetParam().precision == Precision::bf16) values = rounded_to_bf16(values);
    for (const Into into : {Into::overwrite, Into::accumulate}) {
      const Ask ask{.offered = Layout::nhwc, .into = into, .dw_before = 3, .dx_into = into, .dx_before = 2};
      EXPECT_EQ(with("all", c, values, ask), with("plain", c, values, ask));
    }
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// A gradient that comes in two terms gives the bits of their stored sum (s4).
TEST_P(FastWays, AddTheTermsOfAGradientAsAPassOfItsOwnWould) {
  const bool bf16 = GetParam().precision == Precision::bf16;
  ::setenv(variable, "all", 1);
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (c.op->type() != "batch_norm" || !carries_out(*engine_, c)) continue;
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(adds_dy(*engine_, c));
    Values values = draw(c), other = draw(c, 2);
    if (bf16) values = rounded_to_bf16(values), other = rounded_to_bf16(other);
    Values whole = values;
    for (size_t i = 0; i < whole.dy.size(); ++i) {
      const float sum = float(values.dy[i]) + float(other.dy[i]);
      whole.dy[i] = double(bf16 ? float(Bf16(sum)) : sum);
    }
    for (const Into into : {Into::overwrite, Into::accumulate}) {
      const Ask ask{.offered = Layout::nhwc, .into = into, .dw_before = 3, .dx_into = into, .dx_before = 2};
      Ask in_terms = ask;
      in_terms.dy_term = other.dy;
      EXPECT_EQ(with("all", c, values, in_terms), with("all", c, whole, ask));
    }
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

// One launch absorbs the running statistics of several nodes (s5): of fewer channels than it takes as a part,
// of as many, and of more.
TEST_P(FastWays, AbsorbStatisticsOfAllNodesAsTheCpuDoesOneByOne) {
  register_cpu_backend();
  ::setenv(variable, "s5", 1);
  Context context(*engine_), of_cpu(backend("cpu"));
  engine_->enter(context);
  constexpr int microbatches = 3;
  std::vector<RunningStatistics> ours, cpus;
  std::vector<Absorbed> nodes;
  for (const int64_t channels : {37, 256, 600}) {
    ours.push_back(running_statistics(context, channels, microbatches));
    nodes.push_back({ours.back().kernel.get(), ours.back().statistics, ours.back().buffers});
    cpus.push_back(running_statistics(of_cpu, channels, microbatches));
    cpus.back().kernel->absorb(of_cpu, cpus.back().statistics, cpus.back().buffers);
  }
  const auto at_once = engine_->make_absorption(context, nodes);
  ASSERT_TRUE(at_once);
  at_once->run(context);
  for (size_t node = 0; node < ours.size(); ++node) {
    const std::vector<Tensor> here = buffers_here(context, ours[node]), &right = cpus[node].buffers;
    EXPECT_EQ(here[2].data<int32_t>()[0], 5 + microbatches);
    for (size_t i = 0; i < here.size(); ++i)
      EXPECT_EQ(std::memcmp(here[i].raw(), right[i].raw(), size_t(right[i].bytes())), 0)
          << "buffer " << i << " of node " << node;
  }
  ::setenv(variable, "plain", 1);
  EXPECT_FALSE(engine_->make_absorption(context, nodes));
}

INSTANTIATE_TEST_SUITE_P(All, FastWays, ::testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain::harness
