// The CUDA engine's own kernels, compiled for the host: every launch is a loop (framework/cuda/launch.h),
// with the same order of arithmetic. So their indices, windows, masks and sums are tested where there is no
// device. In the place of cuDNN there is nothing (convolutions go the direct way), in that of cuBLAS our own
// product.
#pragma once

namespace antichain {

// Makes backend("cuda_on_host") available; calling it again changes nothing.
void register_cuda_on_host();

}  // namespace antichain
