// Declares the loops of attention between its products of matrices, on tiles of scores, with loops for each
// instruction set (attention_loops.inc).
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

// A ScoreTile has the scores of some queries, a row each, and of some keys. Memory has room for whole vectors
// in each row.
struct ScoreTile {
  static constexpr int64_t vector = 16;

  float* at;
  int64_t row;  // from a row to the next
  int64_t rows, columns;
  int64_t first_row_sees;  // so many columns, and each row one more than the row before, if it is causal
  bool causal;
  const uint32_t* words;  // of dropout, laid out as the scores; nullptr: nothing is dropped
  uint32_t threshold;     // words below it are dropped
  float kept_scale;       // what gradients of kept probabilities are multiplied by

  int64_t visible(int64_t r) const {
    const int64_t sees = causal ? first_row_sees + r : columns;
    return sees < 0 ? 0 : sees < columns ? sees : columns;
  }
};

template <class T>  // float or Bf16
struct AttentionLoops {
  // Copies rows of numbers to dense rows of floats.
  void (*widen)(const T* from, int64_t from_row, int64_t rows, int64_t columns, float* to);
  // Copies dense rows of floats, each times a factor of its own (nullptr: 1).
  void (*narrow)(const float* from, const float* factors, int64_t rows, int64_t columns, T* to,
                 int64_t to_row);
  // Sets the scores of pairs from different documents, and those of padding, to −∞.
  void (*part)(const ScoreTile&, const int32_t* of_queries, const int32_t* of_keys);
  // Turns scores into exponentials relative to the largest score of the row so far, and drops some.
  // most[r] and sum[r] are those of the row so far, without dropout, and are carried on; row r of `mixed`,
  // dense rows of `width` numbers, is made relative to the new largest score.
  void (*exponentials)(const ScoreTile&, float* most, float* sum, float* mixed, int64_t width);
  // Turns scores into probabilities, of which some are dropped and the others multiplied by kept_scale, and
  // the gradients of these into gradients of scores (laid out as the scores; nullptr: they are not wanted).
  void (*gradients)(const ScoreTile&, const float* most, const float* over_sum, const float* delta,
                    float* gradients);
  // Writes the sum of products of each two rows; both are dense.
  void (*dots)(const float* a, const float* b, int64_t rows, int64_t columns, float* to);
};

}  // namespace antichain::cpu
