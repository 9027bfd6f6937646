// Every infinity and NaN is found, wherever it stands, and no finite number is mistaken for one.
#include "pipeline/run/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace antichain {
namespace {

template <class Real>
class Finite : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Finite, Reals);

TYPED_TEST(Finite, ExtremesAreFinite) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> values{
      0, TypeParam(-0.0), 1, -1, Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()};
  EXPECT_TRUE(all_finite(values.data(), int64_t(values.size())));
  EXPECT_TRUE(all_finite(values.data(), 0));
}

TYPED_TEST(Finite, OneOfManyIsFoundWhereverItStands) {
  using Limits = std::numeric_limits<TypeParam>;
  constexpr int64_t count = 40'003;  // several blocks of the scan and an uneven rest
  std::vector<TypeParam> values(count, TypeParam(-3.5));
  for (const TypeParam bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                              -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    for (const int64_t at : {0l, 1l, 15l, 16'383l, 16'384l, 40'001l, 40'002l}) {
      values[size_t(at)] = bad;
      EXPECT_FALSE(all_finite(values.data(), count)) << at;
      EXPECT_TRUE(all_finite(values.data(), at)) << "only what is asked for: " << at;
      values[size_t(at)] = 0;
    }
  }
  EXPECT_TRUE(all_finite(values.data(), count));
}

TEST(FiniteBf16, EveryBitPatternIsWhatItsFloatIs) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    Bf16 value;
    value.bits = uint16_t(bits);
    EXPECT_EQ(all_finite(&value, 1), std::isfinite(float(value))) << bits;
  }
  std::vector<Bf16> values(40'003, Bf16(-3.5f));
  EXPECT_TRUE(all_finite(values.data(), 40'003));
  for (const size_t at : {0, 31, 16'384, 40'002}) {
    values[at] = Bf16(-std::numeric_limits<float>::infinity());
    EXPECT_FALSE(all_finite(values.data(), 40'003)) << at;
    values[at] = Bf16(0.0f);
  }
}

}  // namespace
}  // namespace antichain
