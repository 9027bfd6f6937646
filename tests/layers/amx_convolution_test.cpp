// AMX's convolutions of bf16 numbers are near float32's of the same numbers, and have the same bits on any
// number of threads. The cases are large enough for several groups of images, whose frames the second-level
// cache holds; tests/layers/op_cases.cpp has small ones.
#include "layers/cpu/amx_convolution.h"

#include <gtest/gtest.h>

#include "layers/cpu/dnnl.h"
#include "tests/cpu_engine.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

OpCase amx_case(std::string name, Shape x, Conv2dOptions options) {
  return {std::move(name), std::make_shared<Conv2d>(options), {x}};
}

const std::vector<OpCase> amx_cases = {
    amx_case("many_images", {9, 32, 48, 48}, {.out = 16, .kernel = 3, .pad = 1, .bias = false}),
    amx_case("odd_blocks_stride_2", {7, 72, 31, 33}, {.out = 40, .kernel = 3, .stride = 2, .pad = 1}),
    amx_case("stride_3", {3, 24, 32, 30}, {.out = 48, .kernel = 5, .stride = 3, .pad = 2}),
    amx_case("stride_of_a_pixel", {9, 128, 32, 33},
             {.out = 64, .kernel = 1, .stride = {2, 3}, .bias = false}),
    amx_case("padding_wider_after", {5, 40, 17, 40}, {.out = 80, .kernel = {7, 2}, .pad = {{1, 0}, {4, 1}}}),
    amx_case("many_weights", {33, 160, 4, 4}, {.out = 130, .kernel = 3, .pad = 1, .bias = false}),
    amx_case("groups_of_4", {9, 64, 24, 24}, {.out = 64, .kernel = 3, .pad = 1, .groups = 16, .bias = false}),
    amx_case("groups_of_64", {5, 192, 9, 8}, {.out = 192, .kernel = 3, .stride = 2, .pad = 1, .groups = 3}),
    amx_case("groups_of_pixels", {5, 96, 1, 1}, {.out = 96, .kernel = 3, .pad = 1, .groups = 6}),
    amx_case("pixels_of_padding", {70, 96, 1, 1}, {.out = 33, .kernel = 3, .pad = 1}),
};

class AmxConvolutions : public ::testing::TestWithParam<OpCase> {};

TEST_P(AmxConvolutions, AreNearFloat32WithTheSameBitsOnAnyThreads) {
  if (!cpu::has_amx()) GTEST_SKIP() << "no AMX";
  const OpCase& c = GetParam();
  const Values values = rounded_to_bf16(draw(c));
  const Results exact = run(cpu_engine(), c, values);
  const Results first = run(cpu_engine(), c, values, {.precision = Precision::bf16});
  // A rounding for storage, where there is one, and sums of up to 20,000 products in another order.
  constexpr double sums = 1e-5, stored = 0x1p-8;
  EXPECT_LE(difference(first.y, exact.y), stored + sums);
  EXPECT_LE(difference(first.dx[0], exact.dx[0]), stored + sums);
  EXPECT_LE(difference(first.dw[0], exact.dw[0]), sums);
  for (const int threads : {2, 5})
    EXPECT_EQ(run(cpu_engine(), c, values, {.threads = threads, .precision = Precision::bf16}), first);
}

INSTANTIATE_TEST_SUITE_P(All, AmxConvolutions, ::testing::ValuesIn(amx_cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain::harness
