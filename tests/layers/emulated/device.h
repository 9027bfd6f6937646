// Emulates a device whose threads are fibers of one host thread. Kernels run as nvcc compiles them, with
// blocks, shared memory and barriers, and not as the loops that a host compiler takes
// (framework/cuda/launch.h). Include it before everything else.
//
// A block's threads run one at a time, each up to its next barrier, in an order that is drawn anew for every
// barrier. A thread that reads another's number without a barrier between finds it written or not, each with
// a chance of 1 in 2 per pair. Shared memory is one static place per kernel, with what the block before left
// in it, as on a device.
#pragma once

#include <cstdint>
#include <functional>

#define ANTICHAIN_EMULATED_DEVICE
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace antichain::emulated {

inline dim3 thread_index = 0, block_index = 0, block_size = 1, grid_size = 1;

// Waits until all threads of the block are there. It ends the process when some have ended without coming.
void barrier();
// Runs every thread of every block, blocks in an order that is drawn anew each time.
void run_kernel(dim3 grid, dim3 block, const std::function<void()>& kernel);
// So far:
int64_t meetings();  // barriers that a block came to
int64_t launches();
int64_t blocks();

}  // namespace antichain::emulated

#define threadIdx antichain::emulated::thread_index
#define blockIdx antichain::emulated::block_index
#define blockDim antichain::emulated::block_size
#define gridDim antichain::emulated::grid_size
#define __syncthreads antichain::emulated::barrier
