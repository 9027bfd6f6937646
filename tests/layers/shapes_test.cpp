// Tests what the operators that give samples other shapes promise beyond their formulas: names of split
// parts, gradients of slices, PyTorch's order of a transposed convolution's weights, and clear errors.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/conv_transpose2d.h"
#include "layers/input.h"
#include "layers/mean.h"
#include "layers/permute.h"
#include "layers/reshape.h"
#include "layers/slice.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain {
namespace {

using harness::Numbers;
using harness::OpCase;

TEST(Split, AddsNeighbouringSlices) {
  Graph graph;
  const NodeId x = input_images(graph, "images", {2, 20, 4, 4});
  const std::vector<NodeId> parts = split(graph, "part", x, {16, 3, 1});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(graph[parts[1]].name, "part.1");
  EXPECT_EQ(graph.shape(parts[1]), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(graph[parts[1]].op->str(), "slice(axis 1, 16:19:1)");
  expect_error([&] { split(graph, "other", x, {16, 3}); }, {"'other'", "2 x 20 x 4 x 4", "16 + 3"});
  expect_error([&] { split(graph, "other", x, {2}, 0); }, {"axis 0"});
}

// Gradients of several slices add up in one tensor. What a slice did not take is −0, so that adding to it
// changes no number, not even a zero's sign.
TEST(Slice, LeavesZerosThatAddNothing) {
  const OpCase c{"slice", std::make_shared<Slice>(SliceOptions{.begin = 1, .end = 2}), {{1, 3}}};
  const harness::Values values{.x = {{1, 2, 3}}, .dy = {-0.0}};
  const harness::Results alone = harness::run(cpu_engine(), c, values);
  for (const double dx : alone.dx[0]) EXPECT_TRUE(dx == 0 && std::signbit(dx));
}

// torch.nn.functional.conv_transpose2d of PyTorch 1.13, with x[i] = i % 7 − 3, weight[i] = i % 5 − 2.
TEST(ConvTranspose2d, HasPyTorchsNumbers) {
  const ConvTranspose2dOptions options{.out = 2,
                                       .kernel = {3, 2},
                                       .stride = {2, 1},
                                       .pad = {1, 0},
                                       .output_pad = {1, 0},
                                       .dilation = {1, 2},
                                       .groups = 2};
  const OpCase c{"pytorch", std::make_shared<ConvTranspose2d>(options), {{1, 4, 2, 3}}};
  harness::Values values{.x = {{}}, .params = {{}, {1, -2}}, .dy = Numbers(40, 1.0)};
  for (int i = 0; i < 24; ++i) values.x[0].push_back(i % 7 - 3);
  for (int i = 0; i < 24; ++i) values.params[0].push_back(i % 5 - 2);
  const Numbers y = {4, -2, 2,   -7,  -4, -10, 1,  1,  7,  3,  0, 1, 0, 2, 5,  3, 3,  4,  -1, -4,
                     0, 0,  -19, -10, 1,  -7,  -7, -7, -5, -1, 0, 0, 7, 2, -1, 0, -1, -5, -4, -3};
  EXPECT_EQ(harness::run(cpu_engine(), c, values).y, y);
}

TEST(ConvTranspose2d, HasPyTorchsParameters) {
  const Shape x{2, 8, 5, 5};
  const ConvTranspose2d op({.out = 6, .kernel = 3, .groups = 2});
  const Signature s = op.infer({&x, 1});
  ASSERT_EQ(s.params.size(), 2u);
  EXPECT_EQ(s.params[0].name, "weight");
  EXPECT_EQ(s.params[0].shape, (Shape{8, 3, 3, 3}));
  EXPECT_EQ(s.params[1].shape, (Shape{6}));
  EXPECT_EQ(s.params[1].init.a, Initialiser::kaiming_uniform_fan_in(27).a);  // 3 of 6 channels, 9 taps
  EXPECT_EQ(s.forward_flops, 2.0 * 2 * 8 * 25 * 27 + 2 * 6 * 49);
}

TEST(ShapeErrors, NameWhatDoesNotFit) {
  const auto infer = [](const Op& op, Shape x) { return [&op, x] { op.infer({&x, 1}); }; };
  expect_error([] { Permute({1, 0, 2}); }, {"permute(1, 0, 2)", "samples (0) first"});
  expect_error([] { Permute({0, 2, 2}); }, {"each once"});
  expect_error(infer(Permute({0, 2, 1}), {2, 3}), {"3 dimensions", "2 x 3"});
  expect_error([] { Reshape({-1, -1}); }, {"reshape(-1, -1)", "one may be -1"});
  expect_error(infer(Reshape({4, -1}), {2, 3, 3}), {"reshape(4, -1)", "2 x 3 x 3"});
  expect_error(infer(Reshape({8}), {2, 3, 3}), {"does not fit"});
  expect_error([] { Slice({.axis = 0}); }, {"slice the samples"});
  expect_error([] { Slice({.step = 0}); }, {"not positive"});
  expect_error(infer(Slice({.axis = 2}), {2, 3}), {"an axis that 2 x 3 does not have"});
  expect_error(infer(Slice({.begin = 3}), {2, 3}), {"is empty"});
  expect_error([] { Mean({2, 1}); }, {"ascending axes"});
  expect_error([] { Mean({0}); }, {"samples are not averaged"});
  expect_error(infer(Mean({1, 3}), {2, 3, 4}), {"an axis that 2 x 3 x 4 does not have"});
  expect_error([] { ConvTranspose2d({.out = 9, .groups = 2}); }, {"9 channels", "2 groups"});
  expect_error([] { ConvTranspose2d({.out = 9, .output_pad = 1}); }, {"less than the stride"});
  expect_error(infer(ConvTranspose2d({.out = 8, .pad = 3}), {1, 4, 2, 2}),
               {"leaves nothing", "1 x 4 x 2 x 2"});
  expect_error(infer(ConvTranspose2d({.out = 8, .groups = 4}), {1, 6, 2, 2}), {"6 channels", "4 groups"});
}

TEST(ShapeStr, TellsOptionsApart) {
  EXPECT_EQ(Permute({0, 2, 1}).str(), "permute(0, 2, 1)");
  EXPECT_EQ(Reshape({4, -1}).str(), "reshape(4, -1)");
  EXPECT_EQ(Slice({.begin = -3}).str(), "slice(axis 1, -3::1)");
  EXPECT_NE(Mean({2, 3}).str(), Mean({2, 3}, true).str());
  const ConvTranspose2dOptions base{.out = 8, .stride = 2};
  for (const ConvTranspose2dOptions& other :
       {ConvTranspose2dOptions{.out = 9, .stride = 2}, ConvTranspose2dOptions{.out = 8, .stride = 3},
        ConvTranspose2dOptions{.out = 8, .stride = 2, .pad = 1},
        ConvTranspose2dOptions{.out = 8, .stride = 2, .output_pad = 1},
        ConvTranspose2dOptions{.out = 8, .stride = 2, .dilation = 2},
        ConvTranspose2dOptions{.out = 8, .stride = 2, .groups = 2},
        ConvTranspose2dOptions{.out = 8, .stride = 2, .bias = false}})
    EXPECT_NE(ConvTranspose2d(other).str(), ConvTranspose2d(base).str());
}

}  // namespace
}  // namespace antichain
