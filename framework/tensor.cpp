#include "framework/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "framework/error.h"

namespace antichain {
namespace {

// How a layout blocks the first two dimensions of a shape, and the order of the two within one block.
struct Blocking {
  std::string_view name;
  int first = 1, second = 1;  // block sizes of dimension 0 and 1
  bool first_innermost = true;
};

constexpr std::array blockings = {
    Blocking{"plain"},
    Blocking{"nhwc"},
    Blocking{"nChw8c", 1, 8},
    Blocking{"nChw16c", 1, 16},
    Blocking{"OIhw8i8o", 8, 8, true},
    Blocking{"OIhw8o8i", 8, 8, false},
    Blocking{"OIhw16i16o", 16, 16, true},
    Blocking{"OIhw16o16i", 16, 16, false},
    Blocking{"Oihw8o", 8, 1},
    Blocking{"Oihw16o", 16, 1},
};

const Blocking& blocking(Layout layout) { return blockings[size_t(layout)]; }

int64_t blocks(int64_t extent, int block) { return (extent + block - 1) / block; }

// Where element (a, b, y, x) of a four-dimensional tensor is stored.
int64_t offset(const Shape& s, Layout layout, int64_t a, int64_t b, int64_t y, int64_t x) {
  const int64_t height = s[2], width = s[3];
  if (layout == Layout::plain) return ((a * s[1] + b) * height + y) * width + x;
  if (layout == Layout::nhwc) return ((a * height + y) * width + x) * s[1] + b;
  const Blocking& k = blocking(layout);
  const int64_t block_index = (a / k.first) * blocks(s[1], k.second) + b / k.second;
  const int64_t inner =
      k.first_innermost ? (b % k.second) * k.first + a % k.first : (a % k.first) * k.second + b % k.second;
  return ((block_index * height + y) * width + x) * k.first * k.second + inner;
}

}  // namespace

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::u8:
      return 1;
    default:
      return 4;
  }
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "i32", "u8"};
  return names[size_t(dtype)];
}

std::string_view name_of(Layout layout) { return blocking(layout).name; }

Shape::Shape(std::initializer_list<int64_t> dims) : rank_(int(dims.size())) {
  ANTICHAIN_CHECK(rank_ <= max_rank, "a shape has at most five dimensions");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t d : *this) product *= d;
  return product;
}

std::string Shape::str() const { return fmt::format("{}", fmt::join(begin(), end(), " x ")); }

int64_t TensorSpec::elements() const {
  const Blocking& k = blocking(layout);
  if (k.first == 1 && k.second == 1) return shape.elements();
  ANTICHAIN_CHECK(shape.rank() == 4,
                  fmt::format("layout {} needs four dimensions, not {}", k.name, shape.str()));
  return blocks(shape[0], k.first) * k.first * blocks(shape[1], k.second) * k.second * shape[2] * shape[3];
}

std::shared_ptr<std::byte> allocate_host(int64_t bytes) {
  constexpr size_t alignment = 64;
  const size_t rounded = (size_t(bytes) + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, std::max(rounded, alignment)));
  if (!memory) {
    throw Error(fmt::format("the host has no {:.1f} MiB of memory left", double(bytes) / (1 << 20)),
                "use a smaller --batch, more --microbatches, or more ranks", ExitCode::out_of_memory);
  }
  std::memset(memory, 0, std::max(rounded, alignment));
  return {memory, [](std::byte* p) { std::free(p); }};
}

Tensor Tensor::host(TensorSpec spec) { return {spec, allocate_host(spec.bytes())}; }

void relayout(const Tensor& from, const Tensor& to) {
  ANTICHAIN_CHECK(from.shape() == to.shape() && from.dtype() == to.dtype(), "relayout keeps shape and dtype");
  if (from.layout() == to.layout()) {
    std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
    return;
  }
  ANTICHAIN_CHECK(from.shape().rank() == 4, "only four-dimensional tensors have layouts");
  const Shape& s = from.shape();
  const int64_t size = size_of(from.dtype());
  std::memset(to.raw(), 0, size_t(to.bytes()));
  for (int64_t a = 0; a < s[0]; ++a)
    for (int64_t b = 0; b < s[1]; ++b)
      for (int64_t y = 0; y < s[2]; ++y)
        for (int64_t x = 0; x < s[3]; ++x)
          std::memcpy(to.raw() + offset(s, to.layout(), a, b, y, x) * size,
                      from.raw() + offset(s, from.layout(), a, b, y, x) * size, size_t(size));
}

}  // namespace antichain
