// Parts of one block of memory are tensors that share its bytes. Each begins at a multiple of
// part_alignment_bytes, which suits vector registers.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/tensor.h"

namespace antichain {

constexpr int64_t part_alignment_bytes = 64;

constexpr int64_t part_room(int64_t bytes) {
  return (bytes + part_alignment_bytes - 1) / part_alignment_bytes * part_alignment_bytes;
}

// The i-th of n parts is as long as the others, as far as the alignment allows. Where there are few bytes,
// some parts are empty.
struct ByteRange {
  int64_t begin_bytes = 0, bytes = 0;
};
constexpr ByteRange equal_part(int64_t bytes, int i, int n) {
  const int64_t pieces = bytes / part_alignment_bytes;
  const int64_t begin = pieces * i / n, end = pieces * (i + 1) / n;
  return {begin * part_alignment_bytes, (end - begin) * part_alignment_bytes};
}

// A part keeps the whole alive. A part of an empty whole is empty, too.
inline Tensor part_of(const Tensor& whole, int64_t begin_bytes, const TensorSpec& spec) {
  if (!whole) return {spec, nullptr};
  return {spec, std::shared_ptr<std::byte>(whole.storage(), whole.raw() + begin_bytes)};
}

}  // namespace antichain
