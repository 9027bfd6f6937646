#include "framework/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {
namespace {

// Returns a number in (0, 1]: it is never zero, so that its logarithm is finite.
float open_uniform(uint32_t word) { return 1.0f - Philox::uniform(word); }

// Makes two standard normal numbers from two words. Box and Muller, "A Note on the Generation of Random
// Normal Deviates", Annals of Mathematical Statistics, 1958.
std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log(double(open_uniform(a))));
  const double angle = 2.0 * std::numbers::pi * Philox::uniform(b);
  return {float(radius * std::cos(angle)), float(radius * std::sin(angle))};
}

}  // namespace

Initialiser Initialiser::kaiming_normal_fan_out(int64_t fan_out) {
  return normal(std::sqrt(2.0 / double(fan_out)));
}

Initialiser Initialiser::kaiming_uniform_fan_in(int64_t fan_in) {
  return uniform(1.0 / std::sqrt(double(fan_in)));
}

void initialise(const Tensor& values, const Initialiser& init, uint64_t seed, std::string_view full_name) {
  const int64_t count = values.elements();
  if (values.dtype() == DType::i32) {
    std::fill_n(values.data<int32_t>(), count, int32_t(init.a));
    return;
  }
  ANTICHAIN_CHECK(values.dtype() == DType::f32 && values.layout() == Layout::plain,
                  "initial values are plain float32");
  float* out = values.data<float>();
  const Philox random(mix(seed, hash_bytes(full_name)));
  for (int64_t i = 0; i < count; i += 4) {
    const auto w = random.words(uint64_t(i / 4));
    std::array<float, 4> four{};
    switch (init.kind) {
      case Initialiser::Kind::constant:
        four.fill(init.a);
        break;
      case Initialiser::Kind::uniform:
        for (int j = 0; j < 4; ++j) four[j] = init.a * (2 * Philox::uniform(w[j]) - 1);
        break;
      case Initialiser::Kind::normal:
        const auto p = normal_pair(w[0], w[1]), q = normal_pair(w[2], w[3]);
        four = {init.a * p[0], init.a * p[1], init.a * q[0], init.a * q[1]};
        break;
    }
    std::copy_n(four.begin(), std::min<int64_t>(4, count - i), out + i);
  }
}

}  // namespace antichain
