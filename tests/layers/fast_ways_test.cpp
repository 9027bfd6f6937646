// Tests that a fast way of the CUDA engine (framework/cuda/fast.h) gives the bits of the plain way that it
// replaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "framework/bf16.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"

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

INSTANTIATE_TEST_SUITE_P(All, FastWays, ::testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain::harness
