// The sums of batch norm's backward are compiled for each case that networks have. Each must give the same
// bits as the code for all other cases.
#include <gtest/gtest.h>

#include "layers/batch_norm.h"
#include "tests/layers/cuda_on_host/backend.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

// Returns the gradients of weight and bias, of the same x and dy. A tensor that is added is zero.
std::vector<Numbers> sums(BatchNormOptions options, Shape shape, const Ask& ask) {
  Values values = rounded_to_bf16(draw({"norm", std::make_shared<BatchNorm>(BatchNormOptions{}), {shape}}));
  OpCase c{"norm", std::make_shared<BatchNorm>(options), {shape}};
  if (options.add) {
    c.x.push_back(shape);
    values.x.emplace_back(values.x[0].size(), 0);
  }
  return run(backend("cuda_on_host"), c, values, ask).dw;
}

TEST(BatchNormCases, HaveTheSameSums) {
  register_cuda_on_host();
  for (const Precision precision : {Precision::float32, Precision::bf16})
    for (const Shape& shape : {Shape{4, 16, 9, 7}, Shape{3, 5, 8, 8}}) {
      const Ask ask{.offered = Layout::nhwc, .precision = precision};
      Ask adds = ask;
      adds.dx_into = Into::accumulate;
      const auto plain = sums({}, shape, ask), masked = sums({.relu = true}, shape, ask);
      EXPECT_EQ(plain, sums({.add = true}, shape, ask)) << "not masked, beside the general case";
      EXPECT_NE(plain, masked);
      EXPECT_EQ(masked, sums({.add = true, .relu = true}, shape, ask)) << "computed again, beside read";
      EXPECT_EQ(masked, sums({.add = true, .relu = true}, shape, adds)) << "read, beside the general case";
    }
}

}  // namespace
}  // namespace antichain::harness
