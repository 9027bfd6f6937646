// Strided numbers the elements of a part of an array, row-major in its axes, and says where each lies.
#pragma once

#include <cstdint>

namespace antichain {

template <int axes>
struct Strided {
  int64_t extents[axes], strides[axes];  // the outermost axis first

  constexpr Strided() : extents{}, strides{} {
    for (int a = 0; a < axes; ++a) extents[a] = 1;
  }

  constexpr int64_t elements() const {
    int64_t product = 1;
    for (int a = 0; a < axes; ++a) product *= extents[a];
    return product;
  }
  // Returns the place of element i.
  constexpr int64_t at(int64_t i) const {
    int64_t place = 0;
    for (int a = axes - 1; a >= 0; --a) {
      place += i % extents[a] * strides[a];
      i /= extents[a];
    }
    return place;
  }
};

}  // namespace antichain
