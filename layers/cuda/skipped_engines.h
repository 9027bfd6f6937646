// ANTICHAIN_CUDA_SKIP=62,67 names cuDNN's engines, by number, that are never chosen. A number means another
// engine in each pass, and the same list applies to all of them. The variable is for an engine that can be
// planned, but fails or computes wrong numbers when it runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace antichain::cuda {

// Throws Error where the variable is no list of numbers.
std::set<int64_t> skipped_engines();
std::string skipped_in_words();  // ", without cuDNN's engines 62, 67"; "" where none is left out

}  // namespace antichain::cuda
