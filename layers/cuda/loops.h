// ANTICHAIN_CUDA_LOOPS=convolutions, products or all: our own loops in the place of cuDNN, of cuBLASLt, or of
// both. They are slow, and there to find out who computed a wrong number.
#pragma once

#include <string>

namespace antichain::cuda {

enum class Library { cudnn, cublas };

// Error where the variable says something else.
bool by_loops(Library);
std::string loops_in_words();  // ", convolutions by our own loops"; "" without

}  // namespace antichain::cuda
