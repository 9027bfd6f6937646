// Tests what operators promise beyond their formulas: ties, keys of random numbers, and clear errors.
#include <gtest/gtest.h>

#include <algorithm>

#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/pool.h"
#include "layers/softmax_cross_entropy.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain {
namespace {

TEST(MaxPool, FirstOfEqualsGetsTheGradient) {
  const harness::OpCase c{"ties", std::make_shared<Pool>(Pool::Kind::max, PoolOptions{}), {{1, 1, 2, 4}}};
  for (Layout offered : {Layout::plain, Layout::nChw16c}) {
    const harness::Values values{.x = {{0, 5, 7, 7, 5, 5, 7, 7}}, .dy = {1, 2}};
    const harness::Results results = harness::run(cpu_engine(), c, values, {.offered = offered});
    EXPECT_EQ(results.dx[0], (harness::Numbers{0, 1, 2, 0, 0, 0, 0, 0}));
  }
}

std::vector<bool> mask(uint64_t step, uint64_t first_sample, int64_t sample,
                       const std::string& node = "drop") {
  const Dropout op(0.3, node);
  const DropoutMask drawn(op, {.seed = 1, .step = step, .first_sample = first_sample}, sample);
  std::vector<bool> kept;
  for (int64_t quad = 0; quad < 2500; ++quad)
    for (bool k : drawn.kept(quad)) kept.push_back(k);
  return kept;
}

TEST(Dropout, MaskDependsOnThePositionInTheBatchNotOnTheMicroBatch) {
  EXPECT_EQ(mask(4, 0, 6), mask(4, 4, 2));
  EXPECT_NE(mask(4, 0, 6), mask(4, 0, 7));
  EXPECT_NE(mask(4, 0, 6), mask(5, 0, 6));
  EXPECT_NE(mask(4, 0, 6), mask(4, 0, 6, "other"));
}

TEST(Dropout, KeepsTheRightShare) {
  const auto kept = mask(0, 0, 0);
  // 10,000 draws: the standard deviation is 46; five of them.
  EXPECT_NEAR(double(std::count(kept.begin(), kept.end(), true)), 7000, 230);
}

TEST(SoftmaxCrossEntropy, RefusesALabelThatIsNoClass) {
  const harness::OpCase c{"label", std::make_shared<SoftmaxCrossEntropy>(LossOptions{}), {{2, 3}, {2}}};
  const harness::Values values{.x = {{0, 0, 0, 0, 0, 0}, {1, 3}}, .dy = {0, 0, 0, 0}};
  expect_error([&] { harness::run(cpu_engine(), c, values); }, {"sample 1", "label 3", "classes 0 to 2"});
}

TEST(Infer, NamesTheShapesThatDoNotFit) {
  const auto infer = [](const Op& op, std::vector<Shape> x) { return [&op, x] { op.infer(x); }; };
  const Conv2d grouped({.out = 8, .groups = 4}), large({.out = 8, .kernel = 5});
  expect_error(infer(grouped, {{1, 6, 8, 8}}), {"6 channels", "4 groups"});
  expect_error(infer(large, {{1, 6, 4, 4}}), {"5 x 5", "1 x 6 x 4 x 4"});
  expect_error(infer(large, {{1, 6}}), {"4 dimensions", "1 x 6"});
  expect_error(infer(Concat(), {{1, 6, 4, 4}, {1, 6, 4, 5}}), {"1 x 6 x 4 x 5", "channels"});
  expect_error([] { Conv2d({.out = 9, .groups = 2}); }, {"9 filters", "2 groups"});
  expect_error([] { Conv2d({.out = 9, .matrix = true}); }, {"1 x 1 kernel", "matrix"});
  expect_error([] { Conv2d({.out = 9, .dilation = 0}); }, {"dilation 0", "not positive"});
  expect_error([] { Conv2d({.out = 9, .pad = {Extent(0), Extent(-1)}}); }, {"-1 after", "not positive"});
  expect_error(infer(Conv2d({.out = 8, .dilation = 3}), {{1, 6, 6, 7}}), {"7 x 7", "1 x 6 x 6 x 7"});
  expect_error([] { Dropout(1.0, "d"); }, {"p < 1"});
}

TEST(Str, TellsOptionsApart) {
  const auto text = [](Conv2dOptions o) { return Conv2d(o).str(); };
  const Conv2dOptions base{.out = 8};
  for (const Conv2dOptions& other :
       {Conv2dOptions{.out = 9}, Conv2dOptions{.out = 8, .kernel = {3, 1}},
        Conv2dOptions{.out = 8, .stride = 2}, Conv2dOptions{.out = 8, .pad = 1},
        Conv2dOptions{.out = 8, .pad = {Extent(0), Extent(1)}}, Conv2dOptions{.out = 8, .dilation = 2},
        Conv2dOptions{.out = 8, .groups = 2}, Conv2dOptions{.out = 8, .bias = false},
        Conv2dOptions{.out = 8, .kernel = 1, .matrix = true},
        Conv2dOptions{.out = 8, .weight_init = Initialiser::constant(0)}})
    EXPECT_NE(text(other), text(base));
}

// Graph hashes are of these texts, and profiles and plans of earlier versions name them.
TEST(Str, LeavesOutWhatEarlierVersionsDidNotHave) {
  EXPECT_EQ(Conv2d({.out = 8, .pad = {0, 1}}).str(),
            "conv2d(8, kernel 3, stride 1, pad 0x1, groups 1, bias)");
  EXPECT_EQ(Conv2d({.out = 8, .pad = {{1, 0}, {2, 1}}, .dilation = 2}).str(),
            "conv2d(8, kernel 3, stride 1, pad 1x0 before, 2x1 after, dilation 2, groups 1, bias)");
}

}  // namespace
}  // namespace antichain
