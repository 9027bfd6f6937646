// Compares interpolation with numbers of PyTorch 1.13, printed by
//
//   y = torch.nn.functional.interpolate(x, size=… or scale_factor=…, mode=…, align_corners=…)
//   (y * torch.arange(1., y.numel() + 1).reshape(y.shape)).sum().backward(); print(y, x.grad)
//
// with x = [[0, 1, 4], [9, 16, 25]].
#include "layers/interpolate.h"

#include <gtest/gtest.h>

#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain {
namespace {

using harness::Numbers;

void expect_pytorchs(const InterpolateOptions& options, const Numbers& y, const Numbers& dx) {
  const harness::OpCase c{"pytorch", std::make_shared<Interpolate>(options), {{1, 1, 2, 3}}};
  SCOPED_TRACE(c.op->str());
  harness::Values values{.x = {{0, 1, 4, 9, 16, 25}}};
  for (size_t i = 1; i <= y.size(); ++i) values.dy.push_back(double(i));
  for (const Layout offered : {Layout::plain, Layout::nChw8c, Layout::nChw16c}) {
    const harness::Results ours = harness::run(cpu_engine(), c, values, {.offered = offered});
    // PyTorch may round a product and a sum at once, so the two are a few roundings of float32 (6e-8) apart.
    EXPECT_LE(harness::difference(ours.y, y), 3e-7);
    EXPECT_LE(harness::difference(ours.dx[0], dx), 3e-7);
  }
}

TEST(Interpolate, HasPyTorchsNumbers) {
  using enum Interpolation;
  expect_pytorchs({.size = Extent(3, 5)}, {0, 0, 1, 1, 4, 0, 0, 1, 1, 4, 9, 9, 16, 16, 25},
                  {16, 24, 15, 23, 27, 15});
  expect_pytorchs({.scale = Scale(1.6, 2.3)}, {0, 0, 1, 1, 4, 4, 0, 0, 1, 1, 4, 4, 9, 9, 16, 16, 25, 25},
                  {18, 26, 34, 27, 31, 35});
  expect_pytorchs({.mode = bilinear, .size = Extent(3, 5)},
                  {0, 0.400000036, 1.00000024, 2.80000019, 4, 4.5, 6.10000038, 8.5, 12.1000004, 14.5, 9,
                   11.8000002, 16, 21.3999996, 25},
                  {7.29999971, 12.5999985, 15.1000013, 23.2999973, 30.5999985, 31.1000023});
  expect_pytorchs({.mode = bilinear, .size = Extent(3, 5), .align_corners = true},
                  {0, 0.5, 1, 2.5, 4, 4.5, 6.5, 8.5, 11.5, 14.5, 9, 12.5, 16, 20.5, 25},
                  {6.75, 14, 14.25, 21.75, 34, 29.25});
  expect_pytorchs(
      {.mode = bilinear, .scale = Scale(1.6, 2.3)},
      {0, 0.152173892, 0.586956501, 1.06521726, 2.36956501, 3.67391276, 3.9375, 4.4891305, 6.06521749,
       7.68478251, 10.130434, 12.576087, 9, 10.065217, 13.108696, 16.195652, 20.108696, 24.0217381},
      {13.778533, 22.6032619, 16.6807041, 38.7214699, 48.0923958, 31.1236382});
  expect_pytorchs({.mode = bilinear, .scale = Scale(1.6, 2.3), .align_corners = true},
                  {0, 0.400000006, 0.800000012, 1.60000002, 2.80000019, 4, 4.5, 6.10000038, 7.69999981,
                   9.69999981, 12.1000004, 14.5, 9, 11.8000002, 14.6000004, 17.7999992, 21.3999996, 25},
                  {9.60000038, 19.8000011, 20.1000004, 31.1999989, 48.5999985, 41.7000008});
  expect_pytorchs({.mode = bilinear, .size = Extent(1, 2)}, {5.5, 13},
                  {0.375, 0.375, 0.75, 0.375, 0.375, 0.75});
}

// The row has 49 numbers, which are their own positions, and becomes one of 41. PyTorch takes these.
TEST(Interpolate, TakesTheColumnsThatPyTorchTakes) {
  const int expected[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  10, 11, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23,
                          25, 26, 27, 28, 29, 31, 32, 33, 34, 35, 37, 38, 39, 40, 41, 43, 44, 45, 46, 47};
  const LineMap columns = line_maps(Interpolate({.size = Extent(1, 41)}), {1, 1, 1, 49}).columns;
  for (int64_t i = 0; i < 41; ++i) EXPECT_EQ(columns.at(i).first, expected[i]) << i;
}

// Every column of y is found from the columns of x that it reads.
TEST(LineMap, FindsTheReadersOfEveryLine) {
  for (const int64_t in : {1, 2, 3, 7, 64})
    for (const int64_t out : {1, 2, 5, 7, 63, 200})
      for (const InterpolateOptions& o :
           {InterpolateOptions{.size = Extent(1, int(out))},
            {.mode = Interpolation::bilinear, .size = Extent(1, int(out))},
            {.mode = Interpolation::bilinear, .size = Extent(1, int(out)), .align_corners = true}}) {
        const LineMap map = line_maps(Interpolate(o), {1, 1, 1, in}).columns;
        for (int64_t i = 0; i < in; ++i)
          for (int64_t q = 0; q < out; ++q) {
            const Between b = map.at(q);
            EXPECT_EQ(b.first == i || b.second == i, q >= map.begin_of(i) && q < map.end_of(i))
                << in << " to " << out << ": " << i << " read by " << q;
          }
      }
}

TEST(Interpolate, RefusesOptionsThatMakeNoSense) {
  expect_error([] { Interpolate({}); }, {"either a size or a scale"});
  expect_error([] { Interpolate({.size = 2, .scale = 2}); }, {"either a size or a scale"});
  expect_error([] { Interpolate({.scale = Scale(2, 0)}); }, {"not positive"});
  expect_error([] { Interpolate({.size = 2, .align_corners = true}); }, {"only bilinear"});
  const Shape x{2, 3, 4, 4};
  expect_error([&] { Interpolate({.scale = 0.2}).infer({&x, 1}); }, {"leaves nothing of 2 x 3 x 4 x 4"});
}

}  // namespace
}  // namespace antichain
