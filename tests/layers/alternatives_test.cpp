// The list of engines for a convolution, without cuDNN: what is left are our own loops, and in bf16 what is made around others.
#include "layers/cuda/convolution.h"
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
            4);
  EXPECT_EQ(check_alternatives(list_, context, {.out = 6, .kernel = 1}, {2, 4, 7, 7}, Precision::bf16, 1e-6f),
            5);
}

TEST_F(Alternatives, TheFirstIsTheRules) {
  const Shape image{2, 4, 7, 7};
  const Conv2d three({.out = 6, .kernel = 3, .pad = 1}), one({.out = 6, .kernel = 1});
  const auto first = [&](const Op& op) {
    return list_(op, std::span(&image, 1), Precision::bf16)[2].all[0].engine;
  };
  EXPECT_EQ(first(one), "cuBLASLt");
  EXPECT_EQ(first(three), "ours, of float32 copies");
  using namespace cuda;
  for (const Conv2d* op : {&three, &one})
    for (const Precision precision : {Precision::float32, Precision::bf16}) {
      const Convolution c(*op, image, precision);
      for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
        const auto by_rule = plan(c, pass, Factors::exact),
                   listed = all_plans(c, pass, Factors::exact)[0].plan;
        EXPECT_EQ(typeid(*by_rule), typeid(*listed));
        EXPECT_EQ(by_rule->workspace_bytes(), listed->workspace_bytes());
      }
    }
}

}  // namespace
}  // namespace antichain
