// With ANTICHAIN_CUDA_LOOPS=convolutions, products or all, our own loops replace cuDNN, cuBLASLt, or both.
// They are slow and help to find out which library computed a wrong number.
#pragma once

#include <string>

namespace antichain::cuda {

enum class Library { cudnn, cublas };

// Throws Error where the variable has another value.
bool by_loops(Library);
std::string loops_in_words();  // ", convolutions by our own loops"; "" without

}  // namespace antichain::cuda
