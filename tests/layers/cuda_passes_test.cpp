// Tests passes and sums in packs (framework/cuda/passes.h, layers/cuda/sums.h) as loops on the host. Whatever
// the count, and wherever the arrays begin, every number is taken once, nothing outside is touched, and the
// bits are the same.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/gradient_norm.h"
#include "framework/cuda/passes.h"
#include "framework/sum_of_squares.h"
#include "layers/cuda/epilogue.h"
#include "layers/cuda/sums.h"
#include "tests/layers/cuda_on_host/backend.h"

namespace antichain::cuda {
namespace {

// Holds `count` numbers that begin `offset` numbers behind a multiple of 64 bytes, between guards.
template <class T>
class Numbers {
 public:
  Numbers(int64_t count, int offset, float first = 1)
      : count_(count), offset_(offset), all_(size_t(count + 64), T(guard)), begin_(begin()) {
    for (int64_t i = 0; i < count; ++i) at()[i] = T(first + 0.37f * float(i % 101));
  }

  T* at() { return begin_; }
  std::vector<float> read() const {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count_; ++i) numbers.push_back(float(begin_[i]));
    return numbers;
  }
  bool guarded() const {
    for (const T& number : all_)
      if ((&number < begin_ || &number >= begin_ + count_) && float(number) != guard) return false;
    return true;
  }

 private:
  static constexpr float guard = -1024;

  T* begin() {
    const auto past = reinterpret_cast<uintptr_t>(all_.data() + 8) % 64;
    return all_.data() + 8 + (past ? (64 - past) / sizeof(T) : 0) + offset_;
  }

  int64_t count_;
  int offset_;
  std::vector<T> all_;
  T* begin_;
};

template <class T>
class Passes : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Passes, Types);

constexpr int64_t counts[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 64, 1001};
constexpr int offsets[] = {0, 1, 2, 4, 7};

TYPED_TEST(Passes, TakeEveryElementOnceWhateverTheCountAndTheOffset) {
  using T = TypeParam;
  for (const int64_t count : counts)
    for (const int offset : offsets) {
      SCOPED_TRACE(::testing::Message() << count << " from " << offset);
      Numbers<T> x(count, offset), y(count, 0, 5), z(count, offset), w(count, 0);
      const std::vector<float> before = x.read(), added_to = y.read(), old = w.read();
      for_elements(
          nullptr, count,
          [](Index i, float a, float& sum, float none, float& product, float& both) {
            sum += a;
            product = a * float(i) + none;
            both = both * 2 + a;
          },
          read(x.at()), update(y.at()), read<T>(nullptr), write(z.at()), into(w.at(), count % 2 == 0));
      const std::vector<float> sums = y.read(), products = z.read(), both = w.read();
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(sums[i], float(T(added_to[i] + before[i]))) << i;
        EXPECT_EQ(products[i], float(T(before[i] * float(i)))) << i;
        EXPECT_EQ(both[i], float(T((count % 2 == 0 ? old[i] * 2 : 0) + before[i]))) << i;
      }
      EXPECT_EQ(x.read(), before);
      EXPECT_TRUE(x.guarded() && y.guarded() && z.guarded() && w.guarded());
    }
}

TYPED_TEST(Passes, GiveEveryElementItsChannelsNumbers) {
  using T = TypeParam;
  for (const int64_t channels : {1, 3, 8, 10, 16, 24, 64})
    for (const int64_t pixels : {1, 2, 7, 33, 5000})
      for (const int offset : {0, 1, 4}) {
        SCOPED_TRACE(::testing::Message() << channels << " channels from " << offset);
        Numbers<float> bias(channels, offset), scale(channels, 0, 3);
        Numbers<T> x(pixels * channels, offset), y(pixels * channels, 0);
        for_channels(
            nullptr, pixels, channels,
            [](float b, float number, float s, float none, float& result) { result = number * s + b + none; },
            channel(bias.at()), read(x.at()), channel(scale.at()), channel<float>(nullptr), write(y.at()));
        const std::vector<float> b = bias.read(), s = scale.read(), numbers = x.read(), results = y.read();
        for (size_t i = 0; i < numbers.size(); ++i) {
          const size_t c = i % size_t(channels);
          ASSERT_EQ(results[i], float(T(numbers[i] * s[c] + b[c]))) << i;
        }
        EXPECT_TRUE(x.guarded() && y.guarded());
      }
}

// Returns Σ over all pixels, and a copy of the numbers that were summed.
template <class T>
std::vector<float> sums(int64_t pixels, int64_t channels, int offset) {
  const PixelParts parts(pixels, channels);
  Numbers<T> x(pixels * channels, offset), copy(pixels * channels, offset);
  std::vector<Sum> partials(size_t(parts.partials()));
  std::vector<float> all(static_cast<size_t>(channels));
  sum_channels<SumRun>(
      nullptr, parts, Partials<Sum>(partials.data()),
      [](SumRun& run, bool first, float number, float& same) {
        if (first) run.sum += 1000;  // once per run
        run.part += number;
        same = number;
      },
      [&](Index channel, const Sum& sum) { all[channel] = float(sum.value); }, read(x.at()),
      write(copy.at()));
  EXPECT_EQ(copy.read(), x.read());
  EXPECT_TRUE(copy.guarded());
  double runs_of_all = 0;
  for (Index part = 0; part < parts.count; ++part) runs_of_all += parts.used(part);
  const std::vector<float> numbers = x.read();
  for (size_t c = 0; c < all.size(); ++c) {
    double exact = 1000 * runs_of_all;
    for (size_t i = c; i < numbers.size(); i += size_t(channels)) exact += double(numbers[i]);
    EXPECT_NEAR(all[c], exact, 1e-6 * exact)
        << c;  // float32 chains of 16 positive terms: 16 roundings of 6e-8 at most
  }
  return all;
}

TYPED_TEST(Passes, SumEveryPixelOnceWhateverTheSizesAndTheOffset) {
  for (const int64_t channels : {1, 10, 16, 24, 72, 88})
    for (const int64_t pixels : {1, 2, 31, 32, 33, 255, 256, 257, 300, 2049, 20000}) {
      SCOPED_TRACE(::testing::Message() << pixels << " pixels of " << channels << " channels");
      const std::vector<float> aligned = sums<TypeParam>(pixels, channels, 0);
      EXPECT_EQ(sums<TypeParam>(pixels, channels, 1), aligned);
    }
}

// The device's instruction rounds as the CPU does, but for the bits of NaN.
TEST(Rounding, InPairsGivesTheSameNumbers) {
  std::vector<float> all;
  for (uint32_t upper = 0; upper < 1 << 16; ++upper)
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      all.push_back(std::bit_cast<float>(upper << 16 | lower));
  Numbers<Bf16> plain(int64_t(all.size()), 0), pairs(int64_t(all.size()), 0);
  const auto copy = [](Index, float number, float& same) { same = number; };
  for_elements(nullptr, int64_t(all.size()), copy, read<float>(all.data()), write(plain.at()));
  for_elements(nullptr, int64_t(all.size()), copy, read<float>(all.data()),
               write<Rounding::in_pairs>(pairs.at()));
  for (size_t i = 0; i < all.size(); ++i) {
    const Bf16 a = plain.at()[i], b = pairs.at()[i];
    ASSERT_TRUE(a.bits == b.bits || (std::isnan(float(a)) && b.bits == 0x7FFF)) << all[i];
  }
}

// A diverged run must look like one.
TEST(Epilogue, LetsNaNThroughReLU) {
  const Shape shape{1, 4, 1, 3};
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor product = Tensor::host({shape}), y = Tensor::host({shape, type}), bias = Tensor::host({{4}});
    for (int64_t i = 0; i < 12; ++i) product.data<float>()[i] = i == 5 ? std::nanf("") : float(i) - 6;
    register_cuda_on_host();
    Context context(backend("cuda_on_host"));
    const Tensor params[] = {Tensor(), bias};
    Epilogue(true, true, shape, type).forward(context, product.raw(), DType::f32, {.params = params, .y = y});
    const auto at = [&](int64_t i) {
      return type == DType::f32 ? y.data<float>()[i] : float(y.data<Bf16>()[i]);
    };
    EXPECT_TRUE(std::isnan(at(5)));
    EXPECT_EQ(at(0), 0);
    EXPECT_EQ(at(11), 5);
  }
}

// There are enough blocks for a device where there are pixels for them, and never more partials than a fold
// merges quickly.
TEST(PixelParts, FillADevice) {
  struct Case {
    int64_t pixels, channels;
  };
  for (const auto& [pixels, channels] : {Case{32 * 1024, 64}, Case{128 * 1024, 64}, Case{128 * 256, 128},
                                         Case{128 * 64, 256}, Case{128 * 16, 512}}) {
    const PixelParts parts(pixels, channels);
    const int64_t packs_of_a_block = std::min<int64_t>(channels / 8, most_packs);  // of bf16
    EXPECT_GE(int64_t(parts.count) * (channels / 8 / packs_of_a_block), 64) << pixels << " x " << channels;
    EXPECT_LE(parts.count, 256u);
  }
  EXPECT_EQ(PixelParts(32, 2048).count, 1u);
  EXPECT_LE(PixelParts(int64_t(1) << 30, 1).count, 256u);
}

// Gradients of no number, of less than a pack, and of several pieces.
TEST(GradientNorm, IsThatOfAllNumbersAndClipsThem) {
  std::vector<Tensor> gradients;
  double squares = 0;
  for (const int64_t count : {3, 0, 1001, 40'007}) {
    gradients.push_back(Tensor::host({{count}}));
    for (int64_t i = 0; i < count; ++i) gradients.back().data<float>()[i] = 0.01f * float(i % 101 - 40);
    squares += sum_of_squares(gradients.back().data<float>(), count);
  }
  const std::vector<Piece> pieces = pieces_of(gradients);
  const std::vector<uint32_t> first = {0, 1, 1, 2, 5};
  ASSERT_EQ(pieces.size(), first.back());
  std::vector<double> partials(pieces.size() * square_workers), of_pieces(pieces.size()), sums(4);
  float factor = 0;
  const GradientList all{pieces.data(), first.data(), partials.data(),        of_pieces.data(),
                         sums.data(),   &factor,      int64_t(pieces.size()), int64_t(sums.size())};
  sum_squares(nullptr, all);
  EXPECT_EQ(sums[1], 0);
  EXPECT_NEAR(sums[0] + sums[2] + sums[3], squares, 1e-13 * squares) << "doubles in another order";
  const std::vector<float> before(gradients[3].data<float>(), gradients[3].data<float>() + 40'007);
  clip(nullptr, all, 2 * std::sqrt(squares));
  EXPECT_EQ(factor, 1);
  clip(nullptr, all, 0.5 * std::sqrt(squares));
  const float clipped = factor;
  EXPECT_NEAR(clipped, 0.5, 1e-6);
  scale(nullptr, all, 0.25f);
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_EQ(gradients[3].data<float>()[i], before[i] * clipped * 0.25f);
}

}  // namespace
}  // namespace antichain::cuda
