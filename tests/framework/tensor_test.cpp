// Tests layouts: where elements are stored, how much is padded, and that relayout loses nothing.
#include "framework/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "framework/error.h"

namespace antichain {
namespace {

TEST(Tensor, BlockedLayoutsPadTheirBlockedDimensions) {
  EXPECT_EQ((TensorSpec{{2, 10, 3, 3}}.elements()), 2 * 10 * 9);
  EXPECT_EQ((TensorSpec{{2, 10, 3, 3}, DType::f32, Layout::nChw16c}.elements()), 2 * 16 * 9);
  EXPECT_EQ((TensorSpec{{2, 17, 3, 3}, DType::f32, Layout::nChw8c}.elements()), 2 * 24 * 9);
  EXPECT_EQ((TensorSpec{{10, 3, 3, 3}, DType::f32, Layout::OIhw16i16o}.elements()), 16 * 16 * 9);
  EXPECT_EQ((TensorSpec{{10, 3, 3, 3}, DType::f32, Layout::Oihw16o}.elements()), 16 * 3 * 9);
  EXPECT_THROW((TensorSpec{{2, 10}, DType::f32, Layout::nChw16c}.elements()), Error);
}

TEST(Tensor, IsAlignedAndZeroed) {
  const Tensor t = Tensor::host({{3, 5}});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(t.data<float>()[i], 0.0f);
  EXPECT_FALSE(bool(Tensor()));
}

Tensor counted(const Shape& shape) {
  const Tensor t = Tensor::host({shape});
  std::iota(t.data<float>(), t.data<float>() + t.elements(), 1.0f);
  return t;
}

// These are the formulas of oneDNN's format tags, written out once more.
TEST(Tensor, RelayoutPutsElementsWhereTheTagSays) {
  const Tensor plain = counted({2, 20, 2, 3});
  const Tensor blocked = Tensor::host({plain.shape(), DType::f32, Layout::nChw16c});
  relayout(plain, blocked);
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 32; ++c)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 3; ++x) {
          const float expected = c < 20 ? plain.data<float>()[((n * 20 + c) * 2 + y) * 3 + x] : 0.0f;
          EXPECT_EQ(blocked.data<float>()[(((n * 2 + c / 16) * 2 + y) * 3 + x) * 16 + c % 16], expected);
        }
  const Tensor weights = counted({20, 18, 1, 1});
  const Tensor oi = Tensor::host({weights.shape(), DType::f32, Layout::OIhw16i16o});
  const Tensor io = Tensor::host({weights.shape(), DType::f32, Layout::OIhw16o16i});
  relayout(weights, oi);
  relayout(weights, io);
  const float value = weights.data<float>()[17 * 18 + 3];  // o = 17, i = 3
  EXPECT_EQ(oi.data<float>()[(1 * 2 + 0) * 256 + 3 * 16 + 1], value);
  EXPECT_EQ(io.data<float>()[(1 * 2 + 0) * 256 + 1 * 16 + 3], value);
  // A matrix of weights lies as these filters of one pixel.
  const Tensor matrix = counted({20, 18});
  const Tensor blocks = Tensor::host({matrix.shape(), DType::f32, Layout::OIhw16i16o});
  relayout(matrix, blocks);
  ASSERT_EQ(blocks.bytes(), oi.bytes());
  EXPECT_TRUE(std::equal(oi.raw(), oi.raw() + oi.bytes(), blocks.raw()));
}

TEST(Tensor, RelayoutThereAndBackChangesNothing) {
  for (Layout layout : {Layout::nhwc, Layout::nChw8c, Layout::nChw16c, Layout::OIhw8i8o, Layout::OIhw8o8i,
                        Layout::OIhw16i16o, Layout::OIhw16o16i, Layout::Oihw8o, Layout::Oihw16o}) {
    const Tensor plain = counted({19, 21, 3, 2});
    const Tensor there = Tensor::host({plain.shape(), DType::f32, layout});
    const Tensor back = Tensor::host(plain.spec());
    relayout(plain, there);
    relayout(there, back);
    EXPECT_TRUE(std::equal(plain.raw(), plain.raw() + plain.bytes(), back.raw())) << name_of(layout);
  }
}

}  // namespace
}  // namespace antichain
