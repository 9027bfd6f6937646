// Winograd's passes are near a convolution in double precision, for every instruction set that the machine
// has, and have the same bits on any number of threads.
#include "layers/cpu/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/random.h"
#include "layers/cpu/dnnl.h"

namespace antichain {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct WinogradCase {
  std::string name;
  Shape x;
  int64_t out;
  Extent before = 1, after = 1;  // the padding
  int groups = 1;

  Shape y() const { return {x[0], out, x[2] + before.h + after.h - 2, x[3] + before.w + after.w - 2}; }
  Shape weights() const { return {out, x[1] / groups, 3, 3}; }
  friend void PrintTo(const WinogradCase& c, std::ostream* to) { *to << c.name; }
};

// They leave rests of tiles, of blocks of channels, and of chunks of both.
const std::vector<WinogradCase> winograd_cases = {
    {"one_tile", {1, 16, 4, 4}, 16},
    {"uneven", {1, 20, 5, 7}, 33},
    {"thirteen_pixels_without_padding", {2, 40, 13, 13}, 24, 0, 0},
    {"wide_padding", {2, 17, 9, 6}, 16, {2, 1}, {1, 2}},
    {"padded_after", {1, 8, 6, 9}, 8, {0, 1}, {2, 0}},
    {"many_channels", {1, 170, 8, 7}, 100},
    {"many_tiles", {9, 24, 17, 14}, 40},
    {"one_pixel", {3, 16, 1, 1}, 16},
    {"groups", {3, 96, 9, 6}, 96, 1, 1, 6},
    {"three_groups_of_many_tiles", {9, 96, 17, 14}, 48, 1, 1, 3},
};

// A tensor or a filter in blocks of channels, between numbers that nobody may write.
class Blocked {
 public:
  Blocked(const Shape& shape, int64_t lanes, bool filter, float fill = 0)
      : shape_(shape),
        lanes_(lanes),
        filter_(filter),
        numbers_(size_t(guard +
                        ((filter ? rounded(shape[0]) : shape[0]) * rounded(shape[1]) * shape[2] * shape[3]) +
                        guard),
                 fill) {
    std::fill_n(numbers_.begin(), guard, untouched);
    std::fill_n(numbers_.rbegin(), guard, untouched);
  }
  Blocked(const Shape& shape, int64_t lanes, bool filter, const Doubles& values)
      : Blocked(shape, lanes, filter) {
    for_each([&](int64_t i, float& number) { number = float(values[size_t(i)]); });
  }

  float* data() { return numbers_.data() + guard; }
  template <class F>
  void for_each(const F& f) {
    int64_t i = 0;
    for (int64_t a = 0; a < shape_[0]; ++a)
      for (int64_t b = 0; b < shape_[1]; ++b)
        for (int64_t c = 0; c < shape_[2]; ++c)
          for (int64_t d = 0; d < shape_[3]; ++d) f(i++, data()[place(a, b, c, d)]);
  }
  // Checks all numbers, of which the padding is zero.
  void expect_near(const Doubles& right, float before = 0) {
    double largest = 0, error = 0;
    for (const double number : right) largest = std::max(largest, std::abs(number));
    Blocked copy = *this;
    copy.for_each([&](int64_t i, float& number) {
      error = std::max(error, std::abs(number - before - right[size_t(i)]));
      number = before;
    });
    // Some ten times a rounding: transforms add and subtract what then cancels. At most 1.3e-6 was seen.
    EXPECT_LE(error, 5e-6 * largest);
    EXPECT_EQ(copy.numbers_, Blocked(shape_, lanes_, filter_, Doubles(right.size(), before)).numbers_);
  }
  bool operator==(const Blocked& other) const { return numbers_ == other.numbers_; }

  static constexpr int64_t guard = 16;
  std::vector<Bf16> in_bf16() const {
    return {numbers_.begin(), numbers_.end()};
  }  // data() is behind the guard

 private:
  static constexpr float untouched = 1e30f;

  int64_t rounded(int64_t channels) const { return (channels + lanes_ - 1) / lanes_ * lanes_; }
  int64_t place(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t blocks = rounded(shape_[1]) / lanes_;
    const int64_t block = (filter_ ? a / lanes_ : a) * blocks + b / lanes_;
    const int64_t pixel = (block * shape_[2] + c) * shape_[3] + d;
    return filter_ ? (pixel * lanes_ + b % lanes_) * lanes_ + a % lanes_ : pixel * lanes_ + b % lanes_;
  }

  Shape shape_;
  int64_t lanes_;
  bool filter_;
  Floats numbers_;
};

Doubles drawn(const Shape& shape, uint64_t seed) {
  Doubles values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(int(mix(seed, i) % 2001) - 1000) / 1000;
  return values;
}

struct Convolved {
  Doubles y, dx, dw;
};

// All passes in double precision, with a bias of its channel's number for each y.
Convolved right_results(const WinogradCase& c, const Doubles& x, const Doubles& w, const Doubles& dy) {
  const Shape ys = c.y();
  Convolved r{Doubles(dy.size()), Doubles(x.size()), Doubles(w.size())};
  size_t at = 0;
  for (int64_t n = 0; n < ys[0]; ++n)
    for (int64_t k = 0; k < ys[1]; ++k)
      for (int64_t i = 0; i < ys[2]; ++i)
        for (int64_t j = 0; j < ys[3]; ++j, ++at) {
          r.y[at] = double(k);
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t row = i + tap / 3 - c.before.h, column = j + tap % 3 - c.before.w;
            if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) continue;
            const int64_t inputs = c.x[1] / c.groups, first = k / (c.out / c.groups) * inputs;
            for (int64_t in = 0; in < inputs; ++in) {
              const auto from = size_t(((n * c.x[1] + first + in) * c.x[2] + row) * c.x[3] + column);
              const auto weight = size_t((k * inputs + in) * 9 + tap);
              r.y[at] += x[from] * w[weight];
              r.dx[from] += dy[at] * w[weight];
              r.dw[weight] += x[from] * dy[at];
            }
          }
        }
  return r;
}

std::vector<const cpu::WinogradLoops*> loops_of_this_machine() {
  const auto& of = cpu::every<cpu::WinogradLoops>();
  std::vector<const cpu::WinogradLoops*> all;
  if (cpu::has_avx2()) all.push_back(of.avx2);
  if (cpu::has_avx512()) all.push_back(of.avx512);
  return all;
}

class WinogradPasses : public ::testing::TestWithParam<WinogradCase> {};

TEST_P(WinogradPasses, AreConvolutionsWithTheSameBitsOnAnyThreads) {
  const WinogradCase& c = GetParam();
  const Doubles x = drawn(c.x, 1), w = drawn(c.weights(), 2), dy = drawn(c.y(), 3);
  const Convolved right = right_results(c, x, w, dy);
  Floats bias;
  for (int64_t k = 0; k < c.out; ++k) bias.push_back(float(k));
  for (const cpu::WinogradLoops* loops : loops_of_this_machine()) {
    SCOPED_TRACE(fmt::format("{} lanes", loops->lanes));
    const int64_t lanes = loops->lanes;
    const cpu::Winograd passes(c.x, c.y(), c.before, c.groups, *loops);
    Blocked xs(c.x, lanes, false, x), ws(c.weights(), lanes, true, w), dys(c.y(), lanes, false, dy);
    std::vector<Blocked> first;
    for (const int threads : {1, 2, 5}) {
      const int64_t bytes = std::max({passes.forward_bytes(threads), passes.backward_data_bytes(threads),
                                      passes.backward_weights_bytes(threads)});
      const auto workspace = Tensor::host({.shape = {bytes}, .dtype = DType::u8});
      std::fill_n(workspace.raw(), bytes, std::byte(0xff));
      Blocked ys(c.y(), lanes, false), dxs(c.x, lanes, false), dws(c.weights(), lanes, true),
          sums(c.weights(), lanes, true, Doubles(w.size(), 1));
      passes.forward(workspace.raw(), threads, xs.data(), ws.data(), bias.data(), ys.data());
      passes.backward_data(workspace.raw(), threads, ws.data(), dys.data(), dxs.data());
      passes.backward_weights(workspace.raw(), threads, xs.data(), dys.data(), dws.data(), Into::overwrite);
      passes.backward_weights(workspace.raw(), threads, xs.data(), dys.data(), sums.data(), Into::accumulate);
      ys.expect_near(right.y);
      dxs.expect_near(right.dx);
      dws.expect_near(right.dw);
      sums.expect_near(right.dw, 1);
      const std::vector<Blocked> results = {ys, dxs, dws, sums};
      if (first.empty()) first = results;
      EXPECT_TRUE(results == first) << threads << " threads";
    }
  }
}

TEST_P(WinogradPasses, OfBf16AreThoseOfTheWidenedNumbersRounded) {
  const WinogradCase& c = GetParam();
  const auto drawn_in_bf16 = [](const Shape& shape, uint64_t seed) {
    Doubles values = drawn(shape, seed);
    for (double& value : values) value = float(Bf16(float(value)));
    return values;
  };
  const Doubles x = drawn_in_bf16(c.x, 1), w = drawn(c.weights(), 2), dy = drawn_in_bf16(c.y(), 3);
  const Floats bias(size_t(c.out), 0.3f);
  for (const cpu::WinogradLoops* loops : loops_of_this_machine()) {
    SCOPED_TRACE(fmt::format("{} lanes", loops->lanes));
    const int64_t lanes = loops->lanes;
    const cpu::Winograd passes(c.x, c.y(), c.before, c.groups, *loops);
    const auto workspace =
        Tensor::host({.shape = {std::max({passes.forward_bytes(1), passes.backward_data_bytes(1),
                                          passes.backward_weights_bytes(1)})},
                      .dtype = DType::u8});
    Blocked xs(c.x, lanes, false, x), ws(c.weights(), lanes, true, w), dys(c.y(), lanes, false, dy),
        ys(c.y(), lanes, false), dxs(c.x, lanes, false), dws(c.weights(), lanes, true), dws_of_bf16 = dws;
    std::vector<Bf16> xs_in_bf16 = xs.in_bf16(), dys_in_bf16 = dys.in_bf16(), ys_in_bf16 = ys.in_bf16(),
                      dxs_in_bf16 = dxs.in_bf16();
    const auto at = [](std::vector<Bf16>& of) { return of.data() + Blocked::guard; };
    passes.forward(workspace.raw(), 1, xs.data(), ws.data(), bias.data(), ys.data());
    passes.forward(workspace.raw(), 1, at(xs_in_bf16), ws.data(), bias.data(), at(ys_in_bf16));
    passes.backward_data(workspace.raw(), 1, ws.data(), dys.data(), dxs.data());
    passes.backward_data(workspace.raw(), 1, ws.data(), at(dys_in_bf16), at(dxs_in_bf16));
    passes.backward_weights(workspace.raw(), 1, xs.data(), dys.data(), dws.data(), Into::overwrite);
    passes.backward_weights(workspace.raw(), 1, at(xs_in_bf16), at(dys_in_bf16), dws_of_bf16.data(),
                            Into::overwrite);
    EXPECT_TRUE(std::ranges::equal(ys_in_bf16, ys.in_bf16(), {}, &Bf16::bits, &Bf16::bits));
    EXPECT_TRUE(std::ranges::equal(dxs_in_bf16, dxs.in_bf16(), {}, &Bf16::bits, &Bf16::bits));
    EXPECT_TRUE(dws_of_bf16 == dws);
  }
}

// Groups of 16 channels gain by it, groups of 8 have a kernel of their own, and weight gradients of four
// pixels gain where oneDNN has no code for them.
TEST(WinogradPays, InWideGroupsAndForImagesOfFourPixels) {
  if (!cpu::has_avx2()) GTEST_SKIP() << "the machine has no AVX2";
  using Pass = cpu::Winograd::Pass;
  const auto pays = [](const Shape& x, int groups, Pass pass) {
    return cpu::Winograd::pays({.out = x[1], .kernel = 3, .pad = 1, .groups = groups}, x, x,
                               Precision::float32, pass);
  };
  for (const Pass pass : {Pass::forward, Pass::data, Pass::weights}) {
    EXPECT_TRUE(pays({32, 512, 8, 8}, 32, pass));
    EXPECT_FALSE(pays({32, 256, 8, 8}, 32, pass));
    EXPECT_FALSE(pays({32, 72, 8, 8}, 3, pass)) << "24 channels do not fill blocks of 16";
  }
  EXPECT_EQ(pays({16, 512, 2, 2}, 1, Pass::weights), !cpu::has_avx512());
  EXPECT_FALSE(pays({16, 512, 2, 2}, 1, Pass::forward));
}

INSTANTIATE_TEST_SUITE_P(All, WinogradPasses, ::testing::ValuesIn(winograd_cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain
