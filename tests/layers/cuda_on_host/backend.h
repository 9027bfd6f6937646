// Compiles the CUDA engine's own kernels for the host: every launch is a loop (framework/cuda/launch.h), with
// the same order of arithmetic. So their indices, windows, masks and sums are tested where there is no
// device. Nothing replaces cuDNN (convolutions use our own loops); our own product replaces cuBLAS.
#pragma once

#include <cstdint>

namespace antichain {

// Makes backend("cuda_on_host") available; calling it again changes nothing.
void register_cuda_on_host();
int64_t copies_on_host();  // that the engine has made so far

}  // namespace antichain
