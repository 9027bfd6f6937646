// This is a sum of squares, in an order that depends on nothing but the count, and the factor that clips a
// norm. It is in double precision, where the square of a float is exact.
#pragma once

#include <cstdint>

namespace antichain {

// The lanes are independent sums, so that compilers make vectors of them. Numbers may be added in parts, of
// which all but the last have a multiple of `lanes`.
struct SumOfSquares {
  static constexpr int lanes = 8;
  double sums[lanes] = {};

  constexpr void add(const float* x, int64_t count) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; ++lane) sums[lane] += double(x[i + lane]) * double(x[i + lane]);
    for (int lane = 0; i < count; ++i, ++lane) sums[lane] += double(x[i]) * double(x[i]);
  }
  constexpr double total() const {
    double sum = 0;
    for (const double lane : sums) sum += lane;
    return sum;
  }
};

constexpr double sum_of_squares(const float* x, int64_t count) {
  SumOfSquares sum;
  sum.add(x, count);
  return sum.total();
}

// Returns the factor that clips a vector of this norm to `most`; 1 where the norm is not finite.
constexpr float clip_factor_of(double norm, double most) {
  constexpr double largest = 1.7976931348623157e308;
  const double factor = most / (norm + 1e-6);
  return norm <= largest && factor < 1 ? float(factor) : 1.0f;
}

}  // namespace antichain
