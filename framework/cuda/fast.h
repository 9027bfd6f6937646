// Lists the fast ways of the CUDA engine. Each takes the place of a plain way that stays and is tested, and
// each has a switch, so that a device that computes a wrong number tells which of them is at fault:
//
//   ANTICHAIN_CUDA_FAST=s2,s3    these, and no others
//   ANTICHAIN_CUDA_FAST=all      all of them
//   ANTICHAIN_CUDA_FAST=plain    none of them
//
// Without the variable, the ways that the table marks as on by default are on.
#pragma once

#include <span>
#include <string>

namespace antichain::cuda {

enum class Fast {
  weight_gradients,
  fold_in_sums,
  special_passes,
  residual_sums,
  statistics,
  next_step,
  dependent_launch
};

struct FastWay {
  Fast way;
  const char* name;  // in ANTICHAIN_CUDA_FAST
  const char* text;  // what it does, for people
  bool by_default;
  bool same_bits = true;  // as the plain way
};
std::span<const FastWay> fast_ways();

// Returns whether a way is on. Throws Error where the variable names a way that does not exist.
bool is_fast(Fast);
std::string fast_in_words();  // ", fast ways s2 and s7"; "" where they are those of the default

// Returns whether the work of a step is recorded as CUDA graphs: it is unless ANTICHAIN_CUDA_GRAPHS=0.
bool records_graphs();
std::string graphs_in_words();  // ", without graphs"; "" where they are recorded

}  // namespace antichain::cuda
