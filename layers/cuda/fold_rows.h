// Merges the numbers of each row of an array, of few long rows: parts of a row first, so that there is work
// for a whole device, and then the parts.
#pragma once

#include "framework/cuda/launch.h"

namespace antichain::cuda {

constexpr int64_t row_part = 1024;  // numbers

// Returns the parts of all rows, or 0 where a row is one part.
inline int64_t row_parts(int64_t rows, int64_t length) {
  return length <= row_part ? 0 : rows * ((length + row_part - 1) / row_part);
}

// load(row, i) returns a Value, and a Value{} changes nothing that it is merged into. finish(row, value)
// receives all of a row merged. `partials` has room for row_parts() values.
template <class Value, class Load, class Finish>
void fold_rows(Stream stream, Value* partials, int64_t rows, int64_t length, const Load& load,
               const Finish& finish) {
  const auto parts = Index(row_parts(rows, length) / rows), end = index_of(length);
  const auto from_row = [=] ANTICHAIN_DEVICE(Index i, Index row) { return load(row, i); };
  if (parts == 0) return fold<Value>(stream, length, rows, from_row, finish);
  fold<Value>(
      stream, row_part, rows * parts,
      [=] ANTICHAIN_DEVICE(Index i, Index part) {
        const Index at = part % parts * Index(row_part) + i;
        return at < end ? load(part / parts, at) : Value{};
      },
      [=] ANTICHAIN_DEVICE(Index part, const Value& merged) { partials[part] = merged; });
  fold<Value>(
      stream, parts, rows,
      [=] ANTICHAIN_DEVICE(Index part, Index row) { return partials[row * parts + part]; }, finish);
}

// These numbers are an argument of a kernel.
struct Numbers {
  static constexpr int64_t most = 64;
  float at[most];
};

// Writes numbers that the host has to the device's memory, as arguments of kernels, so that they can be
// recorded.
inline void put_numbers(Stream stream, const float* from, int64_t count, float* to) {
  for (int64_t done = 0; done < count; done += Numbers::most) {
    Numbers chunk{};
    const int64_t size = std::min<int64_t>(count - done, Numbers::most);
    std::copy_n(from + done, size, chunk.at);
    float* place = to + done;
    for_each(stream, size, [=] ANTICHAIN_DEVICE(Index i) { place[i] = chunk.at[i]; });
  }
}

}  // namespace antichain::cuda
