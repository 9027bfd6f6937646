// The switches of the CUDA engine are variables of the environment. They help to find out what computed a
// wrong number, and the engine's description says which are set:
//
//   ANTICHAIN_CUDA_GRAPHS=0       a step's work is not recorded as CUDA graphs
//   ANTICHAIN_CUDA_LOOPS=convolutions, products or all   our own loops replace cuDNN, cuBLASLt or both; slow
//   ANTICHAIN_CUDA_SKIP=62,67     cuDNN's engines of these numbers are never chosen. A number means another
//                                 engine in each pass, and the list applies to all of them
//   ANTICHAIN_CUDA_PLANS=1        prints each plan of cuDNN's, and the versions of all libraries
//   ANTICHAIN_WEIGHT_GRADIENTS=exact   weight gradients of bf16 are not rounded (`--weight-gradients`)
//
// Each function throws Error where its variable has another value.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace antichain::cuda {

enum class Library { cudnn, cublas };

bool records_graphs();
bool by_loops(Library);
std::set<int64_t> skipped_engines();
bool prints_plans();
bool rounds_weight_gradients();

// Returns for example ", without cuDNN's engines 62 and 67, without graphs"; "" where none is set.
std::string switches_in_words();

}  // namespace antichain::cuda
