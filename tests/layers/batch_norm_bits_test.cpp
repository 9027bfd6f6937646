// Tests that the CUDA engine's batch norm gives the same bits by each of its ways: code of its own for a case
// and the code for all, a gradient in one term and in two, statistics absorbed at once and one by one.
#include <gtest/gtest.h>

#include <cstring>

#include "layers/cpu/backend.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/running_statistics.h"

namespace antichain::harness {
namespace {

class BatchNormBits : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (GetParam().backend == "cpu") GTEST_SKIP() << "the CPU engine has one way";
    std::string why;
    engine_ = find(GetParam(), why);
    if (!engine_) GTEST_SKIP() << why;
  }

  Values rounded(Values values) const {
    return GetParam().precision == Precision::bf16 ? rounded_to_bf16(std::move(values)) : values;
  }
  Results run_here(const OpCase& c, const Values& values, Ask ask) const {
    ask.precision = GetParam().precision;
    return run(*engine_, c, values, ask);
  }

  const Backend* engine_ = nullptr;
};

// Where a gradient is added to what is there, the code for all cases runs.
TEST_P(BatchNormBits, OfGradientsAreThoseOfTheCodeForAllCases) {
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (c.op->type() != "batch_norm" || !carries_out(*engine_, c)) continue;
    SCOPED_TRACE(c.name);
    const Values values = rounded(draw(c));
    const Ask ask{.offered = Layout::nhwc};
    Ask onto_zero = ask;
    onto_zero.dx_into = Into::accumulate;
    EXPECT_EQ(run_here(c, values, ask), run_here(c, values, onto_zero));
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

// A gradient that comes in two terms gives the bits of their stored sum.
TEST_P(BatchNormBits, OfAGradientInTwoTermsAreThoseOfTheirSum) {
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (c.op->type() != "batch_norm" || !carries_out(*engine_, c)) continue;
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(adds_dy(*engine_, c));
    const Values values = rounded(draw(c)), other = rounded(draw(c, 2));
    Values whole = values;
    for (size_t i = 0; i < whole.dy.size(); ++i)
      whole.dy[i] = double(float(values.dy[i]) + float(other.dy[i]));
    whole = rounded(std::move(whole));
    for (const Into into : {Into::overwrite, Into::accumulate}) {
      const Ask ask{.offered = Layout::nhwc, .into = into, .dw_before = 3, .dx_into = into, .dx_before = 2};
      Ask in_terms = ask;
      in_terms.dy_term = other.dy;
      EXPECT_EQ(run_here(c, values, in_terms), run_here(c, whole, ask));
    }
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

// One launch absorbs the running statistics of several nodes: of fewer channels than it takes as a part, of
// as many, and of more.
TEST_P(BatchNormBits, OfStatisticsAbsorbedAtOnceAreTheCpusOneByOne) {
  register_cpu_backend();
  Context context(*engine_), of_cpu(backend("cpu"));
  engine_->enter(context);
  for (const int microbatches : {1, 2, 33}) {
    std::vector<RunningStatistics> ours, cpus;
    std::vector<Absorbed> nodes;
    for (const int64_t channels : {37, 256, 600}) {
      ours.push_back(running_statistics(context, channels, microbatches));
      nodes.push_back({ours.back().kernel.get(), ours.back().statistics, ours.back().buffers});
      cpus.push_back(running_statistics(of_cpu, channels, microbatches));
      cpus.back().kernel->absorb(of_cpu, cpus.back().statistics, cpus.back().buffers);
    }
    engine_->make_absorption(context, nodes)->run(context);
    for (size_t node = 0; node < ours.size(); ++node) {
      const std::vector<Tensor> here = buffers_here(context, ours[node]), &right = cpus[node].buffers;
      EXPECT_EQ(here[2].data<int32_t>()[0], 5 + microbatches);
      for (size_t i = 0; i < here.size(); ++i)
        EXPECT_EQ(std::memcmp(here[i].raw(), right[i].raw(), size_t(right[i].bytes())), 0)
            << "buffer " << i << " of node " << node << " after " << microbatches;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BatchNormBits, ::testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain::harness
