// ANTICHAIN_CUDA_SKIP=62,67: engines of cuDNN's, by number, that are left out of every choice. A number means
// another engine in each pass, and the same list is applied to all of them. It is there for an engine that
// can be planned, but fails or computes wrong numbers when it runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace antichain::cuda {

// Error where the variable is no list of numbers.
std::set<int64_t> skipped_engines();
std::string skipped_in_words();  // ", without cuDNN's engines 62, 67"; "" where none is left out

}  // namespace antichain::cuda
