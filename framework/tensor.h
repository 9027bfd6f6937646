// A tensor is a shape, an element type, a memory layout, and shared bytes.
//
// The layout is part of the value. Convolutions on a CPU want their channels in blocks of one vector register
// (nChw16c: N x C/16 x H x W x 16), and a tensor with such a layout flows from operator to operator without
// being reordered between them. Shapes are always logical (N, C, H, W whatever the layout). A blocked layout
// pads the blocked dimensions up, and padding elements are always zero.
//
// These symbols are used everywhere in this project: N batch, C channels, H W image, K filters, M
// micro-batches, S stages, R ranks; m, s, r are their indices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace antichain {

enum class DType { f32, f64, i32, u8, bf16 };
int64_t size_of(DType);
std::string_view name_of(DType);

// Activations: plain (row-major in the order of the shape: NCHW), nhwc, nChw8c, nChw16c.
// Weights (logical shape O x I x H x W, or O x I): blocks of 8 or 16 input and output channels, or output
// channels only.
enum class Layout {
  plain,
  nhwc,
  nChw8c,
  nChw16c,
  OIhw8i8o,
  OIhw8o8i,
  OIhw16i16o,
  OIhw16o16i,
  Oihw8o,
  Oihw16o,
};
std::string_view name_of(Layout);

// A Shape has up to six dimensions and is a plain value.
class Shape {
 public:
  static constexpr int max_rank = 6;
  static constexpr int64_t most_elements = int64_t(1) << 48;  // so that no size in bytes overflows
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  // Returns the product of the dimensions, 1 for rank 0. Throws Error when it is more than most_elements.
  int64_t elements() const;
  std::string str() const;  // "32 x 64 x 8 x 8"
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, max_rank> dims_{};
  int rank_ = 0;
};

// A TensorSpec says everything about a tensor except its bytes.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  int64_t elements() const;  // stored elements, padding of blocked layouts included
  int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

// A Tensor's bytes are shared between copies of the handle. An empty tensor (no bytes) means "not wanted" or
// "missing".
class Tensor {
 public:
  Tensor() = default;
  Tensor(TensorSpec spec, std::shared_ptr<std::byte> bytes) : spec_(spec), bytes_(std::move(bytes)) {}

  // Returns zero-filled, 64-byte aligned host memory.
  static Tensor host(TensorSpec spec);

  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  Layout layout() const { return spec_.layout; }
  DType dtype() const { return spec_.dtype; }
  int64_t elements() const { return spec_.elements(); }
  int64_t bytes() const { return spec_.bytes(); }
  explicit operator bool() const { return bytes_ != nullptr; }

  std::byte* raw() const { return bytes_.get(); }
  const std::shared_ptr<std::byte>& storage() const { return bytes_; }

  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes_.get());
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<std::byte> bytes_;
};

// Returns so many bytes of host memory, aligned to 64 and filled with zeros. From a mebibyte on they are a
// mapping of their own, in large pages where the system has them, which goes back to the system when it is
// freed. Throws Error when the machine has less memory.
std::shared_ptr<std::byte> allocate_host(int64_t bytes);

// Copies host tensors of equal shape and dtype from one layout to another, writing zeros into the padding.
// This is the slow, general way (initialisation, checkpoints, tests); engines have a fast "reorder" operator.
void relayout(const Tensor& from, const Tensor& to);

}  // namespace antichain
