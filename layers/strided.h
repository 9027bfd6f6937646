// Strided numbers the elements of a part of an array, row-major in its axes, and says where each lies.
#pragma once

#include <cstdint>

namespace antichain {

// Places are int64_t on the host. A device divides 32 bits by some instructions and calls a function for 64.
template <int axes, class Place = int64_t>
struct Strided {
  Place extents[axes], strides[axes];  // the outermost axis first

  constexpr Strided() : extents{}, strides{} {
    for (int a = 0; a < axes; ++a) extents[a] = 1;
  }
  // Takes the places of another type, and leaves out axes of one element: what is left is innermost.
  template <class Other>
  constexpr explicit Strided(const Strided<axes, Other>& other) : Strided() {
    for (int a = axes - 1, to = axes; a >= 0; --a) {
      if (other.extents[a] == 1) continue;
      extents[--to] = Place(other.extents[a]);
      strides[to] = Place(other.strides[a]);
    }
  }

  constexpr Place elements() const {
    Place product = 1;
    for (int a = 0; a < axes; ++a) product *= extents[a];
    return product;
  }
  // Returns the place of element i.
  constexpr Place at(Place i) const {
    Place place = 0;
    for (int a = axes - 1; a >= 0; --a) {
      if (extents[a] == 1) continue;
      const Place outer = i / extents[a];
      place += (i - outer * extents[a]) * strides[a];
      i = outer;
    }
    return place;
  }
};

}  // namespace antichain
