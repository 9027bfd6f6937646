// Tests the emulated device itself: a missing barrier in a kernel must show.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/cuda/launch.h"
#include "tests/layers/emulated/device.h"

namespace antichain::emulated {
namespace {

constexpr unsigned many = 64;

// Computes the sum of 0 to 63, by pairs, in each of three blocks.
template <bool waits>
void add_up(int* sums) {
  __shared__ int values[many];
  values[threadIdx.x] = int(threadIdx.x);
  for (unsigned half = many / 2; half > 0; half /= 2) {
    if (waits) __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = values[0];
}

TEST(EmulatedDevice, ABarrierIsForAllOfABlock) {
  std::vector<int> sums(3, -1);
  const int64_t before = meetings();
  run_kernel(3, many, [&] { add_up<true>(sums.data()); });
  EXPECT_EQ(sums, std::vector<int>(3, many * (many - 1) / 2));
  EXPECT_EQ(meetings() - before, 3 * 6);
}

TEST(EmulatedDevice, AForgottenBarrierShows) {
  std::vector<int> sums(3, -1);
  run_kernel(3, many, [&] { add_up<false>(sums.data()); });
  EXPECT_NE(sums, std::vector<int>(3, many * (many - 1) / 2));
}

TEST(EmulatedDevice, HasEveryThreadOnce) {
  std::vector<int> seen(2 * 3 * 5 * 7, 0);
  run_kernel(dim3(2, 3), dim3(5, 7), [&] {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    ++seen[(block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x];
  });
  EXPECT_EQ(std::ranges::count(seen, 1), int64_t(seen.size()));
}

TEST(EmulatedDeviceDeathTest, ABarrierThatSomeDoNotComeTo) {
  EXPECT_DEATH(run_kernel(1, many,
                          [] {
                            if (threadIdx.x < 3) __syncthreads();
                          }),
               "a barrier that not all threads of a block come to");
}

}  // namespace
}  // namespace antichain::emulated
