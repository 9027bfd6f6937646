// Tests the list of engines for a convolution without cuDNN: only our own loops are left, and in bf16 the
// engines that wrap others.
#include "layers/cuda/convolution.h"

#include <gtest/gtest-spi.h>

#include "tests/layers/alternatives_check.h"
#include "tests/layers/cuda_on_host/backend.h"

namespace antichain {
namespace {

using harness::check_alternatives;

class Alternatives : public ::testing::Test {
 protected:
  Alternatives() { register_cuda_on_host(); }
  const ListAlternatives list_ = cuda::conv2d_alternatives(cuda::Factors::exact);
};

TEST_F(Alternatives, AreOursWhereNothingElseIs) {
  Context context(backend("cuda_on_host"));
  const int engines = check_alternatives(list_, context, {.out = 6, .kernel = 3, .stride = 2, .pad = 1},
                                         {2, 4, 7, 7}, Precision::float32, 0);
  EXPECT_EQ(engines, 3);
}

// 8 bits of a bf16 number's mantissa; gradients of weights are float32, of sums in another order.
TEST_F(Alternatives, OfBf16AreMadeOfFloat32CopiesAndOfProducts) {
  Context context(backend("cuda_on_host"));
  EXPECT_EQ(check_alternatives(list_, context, {.out = 6, .kernel = 3, .pad = 1}, {2, 4, 7, 7},
                               Precision::bf16, 1e-6f),
            5);
  EXPECT_EQ(check_alternatives(list_, context, {.out = 6, .kernel = 1}, {2, 4, 7, 7}, Precision::bf16, 1e-6f),
            6);
}

// A float32 sum of 4 to 98 products in another order; bf16 results are rounded once more.
TEST_F(Alternatives, ProductsComputeWhatConvolutionsDo) {
  using namespace cuda;
  const ListAlternatives products = [](const Op& op, std::span<const Shape> x, Precision precision) {
    const Convolution c(dynamic_cast<const Conv2d&>(op), x[0], precision);
    auto passes = conv2d_alternatives(Factors::exact)(op, x, precision);
    for (size_t i = 0; i < 3; ++i)
      passes[i].all.insert(passes[i].all.begin(),
                           {"product", 0,
                            [plan = plan_product(c, Pass(i), Factors::exact)](
                                Context& context, std::span<const Tensor> t, std::byte* workspace) {
                              plan->run(context, t[0].raw(), t[1].raw(), t[2].raw(), workspace);
                            }});
    return passes;
  };
  Context context(backend("cuda_on_host"));
  check_alternatives(products, context, {.out = 6, .kernel = 1}, {2, 4, 7, 7}, Precision::float32, 1e-6f);
  check_alternatives(products, context, {.out = 6, .kernel = 1}, {2, 4, 7, 7}, Precision::bf16, 1e-2f);
}

// An engine that fails is named. The test fails where training would take it: as the first, or as the second
// where the first is left out.
TEST_F(Alternatives, FailOnlyWhereTrainingWouldTakeThem) {
  Context context(backend("cuda_on_host"));
  for (const size_t place : {0, 1, 4}) {
    const ListAlternatives with_a_broken_one = [&](const Op& op, std::span<const Shape> x,
                                                   Precision precision) {
      auto passes = list_(op, x, precision);
      for (PassAlternatives& pass : passes) {
        pass.all.insert(pass.all.begin(), 5, pass.all.back());
        pass.all[place] = {"broken", 0, [](Context&, auto, auto) { throw Error("it fails", ""); }};
      }
      return passes;
    };
    int ran = 0;
    ::testing::TestPartResultArray failures;
    ::testing::internal::CaptureStdout();
    {
      ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      ran = check_alternatives(with_a_broken_one, context, {.out = 6, .kernel = 3}, {2, 4, 7, 7},
                               Precision::float32, 0);
    }
    const std::string said = ::testing::internal::GetCapturedStdout(),
                      what = "forward by broken fails: it fails";
    EXPECT_EQ(ran, 3 * 5);
    EXPECT_EQ(failures.size() == 0, place == 4) << place;
    EXPECT_NE((place == 4 ? said : failures.GetTestPartResult(0).message()).find(what), std::string::npos);
  }
}

TEST_F(Alternatives, TheFirstIsTheRules) {
  const Shape image{2, 4, 7, 7};
  const Conv2d three({.out = 6, .kernel = 3, .pad = 1}), one({.out = 6, .kernel = 1});
  const auto first = [&](const Op& op) {
    return list_(op, std::span(&image, 1), Precision::bf16)[2].all[0].engine;
  };
  EXPECT_EQ(first(one), "cuBLASLt");
  EXPECT_EQ(first(three), "cuDNN, rounded to bf16");
  ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", "exact", 1);
  EXPECT_EQ(first(three), "ours, of float32 copies");
  ::unsetenv("ANTICHAIN_WEIGHT_GRADIENTS");
  using namespace cuda;
  for (const Conv2d* op : {&three, &one})
    for (const Precision precision : {Precision::float32, Precision::bf16}) {
      const Convolution c(*op, image, precision);
      for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
        const auto by_rule = plan(c, pass, Factors::exact),
                   listed = all_plans(c, pass, Factors::exact)[0].plan;
        const auto &one = *by_rule, &other = *listed;
        EXPECT_EQ(typeid(one), typeid(other));
        EXPECT_EQ(by_rule->workspace_bytes(), listed->workspace_bytes());
      }
    }
}

}  // namespace
}  // namespace antichain
