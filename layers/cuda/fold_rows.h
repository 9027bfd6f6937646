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

constexpr int wide_columns = 64;

// Merges the numbers of each row, which lie one behind the other, so that neighbouring threads read
// neighbours. load(row, i) is also asked for i behind the row's end. `partials` has room for
// rows · wide_columns values.
template <class Value, class Load, class Finish>
void fold_wide_rows(Stream stream, Value* partials, int64_t rows, int64_t length, const Load& load,
                    const Finish& finish) {
  fold<Value>(
      stream, (length + wide_columns - 1) / wide_columns, rows * wide_columns,
      [=] ANTICHAIN_DEVICE(Index part, Index column) {
        return load(column / wide_columns, part * wide_columns + column % wide_columns);
      },
      [=] ANTICHAIN_DEVICE(Index column, const Value& merged) { partials[column] = merged; });
  fold<Value>(
      stream, wide_columns, rows,
      [=] ANTICHAIN_DEVICE(Index part, Index row) { return partials[row * wide_columns + part]; }, finish);
}

// These numbers are an argument of a kernel, which has at most 4 KiB.
template <class T>
struct Numbers {
  static constexpr int64_t most = 512;
  T at[most];
};

// Writes numbers that the host has to the device's memory, as arguments of kernels, so that they can be
// recorded.
template <class T>
void put_numbers(Stream stream, const T* from, int64_t count, T* to) {
  for (int64_t done = 0; done < count; done += Numbers<T>::most) {
    Numbers<T> chunk{};
    const int64_t size = std::min<int64_t>(count - done, Numbers<T>::most);
    std::copy_n(from + done, size, chunk.at);
    T* place = to + done;
    for_each(stream, size, [=] ANTICHAIN_DEVICE(Index i) { place[i] = chunk.at[i]; });
  }
}

}  // namespace antichain::cuda
