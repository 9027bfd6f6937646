#include "framework/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "framework/error.h"

namespace antichain {
namespace {

// Blocking says how a layout blocks the first two dimensions of a shape, and the order of the two within one
// block.
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

// Returns the shape with four dimensions. A matrix of weights lies as filters of one pixel do, and filters of
// one dimension as those of one row.
Shape four_dimensional(const Shape& s, Layout layout) {
  if (s.rank() == 3) return {s[0], s[1], 1, s[2]};
  if (s.rank() == 2 && blocking(layout).first > 1) return {s[0], s[1], 1, 1};
  ANTICHAIN_CHECK(s.rank() == 4,
                  fmt::format("layout {} needs four dimensions, not {}", name_of(layout), s.str()));
  return s;
}

// Places says where element (a, b, y, x) of a four-dimensional tensor is stored: at first[a] + second[b] + (y
// W + x) stride.
struct Places {
  std::vector<int64_t> first, second;
  int64_t stride = 1;
};

Places places(const Shape& s, Layout layout) {
  const Blocking& k = blocking(layout);
  const int64_t area = s[2] * s[3], width = blocks(s[1], k.second) * k.second;  // with its padding
  const bool pixels = layout == Layout::nhwc;
  Places p{.stride = pixels ? s[1] : int64_t(k.first) * k.second};
  for (int64_t a = 0; a < s[0]; ++a)
    p.first.push_back(a / k.first * k.first * width * area +
                      a % k.first * (k.first_innermost ? 1 : k.second));
  for (int64_t b = 0; b < s[1]; ++b)
    p.second.push_back(pixels ? b
                              : b / k.second * k.second * k.first * area +
                                    b % k.second * (k.first_innermost ? k.first : 1));
  return p;
}

// Copies in tiles of the largest block, so that what is read and written stays in the cache. An area that is
// known at compile time needs no loop: 0 stands for any other.
template <class Element, int64_t known_area>
void relayout_elements(const Shape& s, const Tensor& from, const Tensor& to) {
  constexpr int64_t tile = 16;
  const Places read = places(s, from.layout()), write = places(s, to.layout());
  const int64_t area = known_area > 0 ? known_area : s[2] * s[3];
  const int64_t read_stride = read.stride, write_stride = write.stride;
  for (int64_t a0 = 0; a0 < s[0]; a0 += tile)
    for (int64_t b0 = 0; b0 < s[1]; b0 += tile)
      for (int64_t a = a0; a < std::min(a0 + tile, s[0]); ++a)
        for (int64_t b = b0; b < std::min(b0 + tile, s[1]); ++b) {
          const Element* in = from.data<Element>() + read.first[size_t(a)] + read.second[size_t(b)];
          Element* out = to.data<Element>() + write.first[size_t(a)] + write.second[size_t(b)];
          for (int64_t i = 0; i < area; ++i) out[i * write_stride] = in[i * read_stride];
        }
}

template <class Element>
void relayout_elements(const Shape& s, const Tensor& from, const Tensor& to) {
  switch (s[2] * s[3]) {
    case 1:
      return relayout_elements<Element, 1>(s, from, to);
    case 9:
      return relayout_elements<Element, 9>(s, from, to);
    default:
      return relayout_elements<Element, 0>(s, from, to);
  }
}

}  // namespace

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::u8:
      return 1;
    case DType::bf16:
      return 2;
    default:
      return 4;
  }
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "i32", "u8", "bf16"};
  return names[size_t(dtype)];
}

std::string_view name_of(Layout layout) { return blocking(layout).name; }

Shape::Shape(std::span<const int64_t> dims) : rank_(int(dims.size())) {
  ANTICHAIN_CHECK(rank_ <= max_rank, "a shape has at most six dimensions");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t d : *this)
    if (__builtin_mul_overflow(product, d, &product) || product > most_elements)
      throw Error(fmt::format("a tensor of {} is larger than any memory", str()));
  return product;
}

std::string Shape::str() const { return fmt::format("{}", fmt::join(begin(), end(), " x ")); }

int64_t TensorSpec::elements() const {
  const Blocking& k = blocking(layout);
  if (k.first == 1 && k.second == 1) return shape.elements();
  const Shape s = four_dimensional(shape, layout);
  return blocks(s[0], k.first) * k.first * blocks(s[1], k.second) * k.second * s[2] * s[3];
}

std::shared_ptr<std::byte> allocate_host(int64_t bytes) {
  constexpr size_t alignment = 64, own_mapping = 1 << 17;
  const size_t rounded = std::max((size_t(bytes) + alignment - 1) / alignment * alignment, alignment);
  const bool maps = rounded >= own_mapping;
  void* memory = maps ? ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                      : std::aligned_alloc(alignment, rounded);
  if (!memory || memory == MAP_FAILED) {
    throw Error(fmt::format("the host has no {:.1f} MiB of memory left", double(bytes) / (1 << 20)),
                "use a smaller --batch, more --microbatches, or more ranks", ExitCode::out_of_memory);
  }
  // A system without large pages refuses the advice, which changes nothing else.
  if (maps) ::madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  return {static_cast<std::byte*>(memory), [maps, rounded](std::byte* p) {
            if (maps)
              ::munmap(p, rounded);
            else
              std::free(p);
          }};
}

Tensor Tensor::host(TensorSpec spec) { return {spec, allocate_host(spec.bytes())}; }

void relayout(const Tensor& from, const Tensor& to) {
  ANTICHAIN_CHECK(from.shape() == to.shape() && from.dtype() == to.dtype(), "relayout keeps shape and dtype");
  if (from.layout() == to.layout()) {
    std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
    return;
  }
  const Shape shape =
      four_dimensional(from.shape(), from.layout() == Layout::plain ? to.layout() : from.layout());
  if (to.elements() != to.shape().elements()) std::memset(to.raw(), 0, size_t(to.bytes()));  // the padding
  switch (size_of(from.dtype())) {
    case 8:
      return relayout_elements<uint64_t>(shape, from, to);
    case 4:
      return relayout_elements<uint32_t>(shape, from, to);
    case 2:
      return relayout_elements<uint16_t>(shape, from, to);
    default:
      return relayout_elements<uint8_t>(shape, from, to);
  }
}

}  // namespace antichain
