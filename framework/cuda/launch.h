// Two ways to run code on the device, which is all that our own kernels need:
//
//   for_each   f(i) for every i, in any order: each i writes what no other touches
//   fold       per channel, many parts merged into one value in a fixed tree, and handed to `finish`
//
// There are no atomics and no order that depends on scheduling, so equal inputs give equal bits. Compiled by nvcc this
// launches on a stream. Compiled by a host compiler the same calls are loops with the same order of arithmetic: tests run
// every kernel of layers/cuda that way on machines without a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/cuda/resources.h"
#include "framework/error.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "framework/cuda/check.h"
#define ANTICHAIN_DEVICE __device__
#define ANTICHAIN_ANYWHERE __host__ __device__
#else
#define ANTICHAIN_DEVICE
#define ANTICHAIN_ANYWHERE
#endif

namespace antichain::cuda {

using Index =
    uint32_t;  // divides three times as fast as 64 bits, and no tensor of a micro-batch has 2^31 elements

inline Index index_of(int64_t count) {
  ANTICHAIN_CHECK(count >= 0 && count < (int64_t(1) << 31), "kernels number at most 2^31 elements");
  return Index(count);
}

constexpr int lanes = 32;  // of a fold: parts are shared among so many, each merges a run of them in order

#ifdef __CUDACC__

template <class F>
__global__ void run_for_each(Index count, const F f) {
  const Index i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) f(i);
}

template <class Value, class Load, class Finish>
__global__ void __launch_bounds__(lanes* lanes)
    run_fold(Index parts, Index channels, const Load load, const Finish finish) {
  __shared__ Value of_lane[lanes][lanes];
  const Index channel = blockIdx.x * lanes + threadIdx.x, per_lane = (parts + lanes - 1) / lanes;
  const Index begin = threadIdx.y * per_lane, end = min(parts, begin + per_lane);
  if (channel < channels && begin < end) {
    Value value = load(begin, channel);
    for (Index part = begin + 1; part < end; ++part) value.merge(load(part, channel));
    of_lane[threadIdx.y][threadIdx.x] = value;
  }
  __syncthreads();
  if (channel >= channels || threadIdx.y != 0) return;
  Value value = of_lane[0][threadIdx.x];
  for (Index lane = 1; lane * per_lane < parts && lane < lanes; ++lane)
    value.merge(of_lane[lane][threadIdx.x]);
  finish(channel, value);
}

template <class F>
void for_each(Stream stream, int64_t count, const F& f) {
  constexpr unsigned threads = 256;
  const Index n = index_of(count);
  if (n == 0) return;
  run_for_each<<<(n + threads - 1) / threads, threads, 0, stream>>>(n, f);
  ANTICHAIN_CUDA(cudaGetLastError());
}

// load(part, channel) gives a Value; finish(channel, value) takes all of them merged. `parts` is at least 1.
template <class Value, class Load, class Finish>
void fold(Stream stream, int64_t parts, int64_t channels, const Load& load, const Finish& finish) {
  const Index n = index_of(channels);
  run_fold<Value>
      <<<(n + lanes - 1) / lanes, dim3(lanes, lanes), 0, stream>>>(index_of(parts), n, load, finish);
  ANTICHAIN_CUDA(cudaGetLastError());
}

#else

template <class F>
void for_each(Stream, int64_t count, const F& f) {
  for (Index i = 0; i < index_of(count); ++i) f(i);
}

template <class Value, class Load, class Finish>
void fold(Stream, int64_t count, int64_t channels, const Load& load, const Finish& finish) {
  const Index parts = index_of(count), per_lane = (parts + lanes - 1) / lanes;
  for (Index channel = 0; channel < index_of(channels); ++channel) {
    const auto of_lane = [&](Index lane) {
      Value value = load(lane * per_lane, channel);
      for (Index part = lane * per_lane + 1; part < std::min(parts, (lane + 1) * per_lane); ++part)
        value.merge(load(part, channel));
      return value;
    };
    Value value = of_lane(0);
    for (Index lane = 1; lane * per_lane < parts && lane < Index(lanes); ++lane) value.merge(of_lane(lane));
    finish(channel, value);
  }
}

#endif

}  // namespace antichain::cuda
