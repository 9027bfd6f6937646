// What a context on a CUDA device carries: the device's number, the stream on which everything of one rank
// runs in order, and the handles of libraries, made when first asked for.
//
// The stream is a non-blocking one: CUDA orders it with no other, so that it can be recorded while other
// ranks' threads copy and allocate, and whoever uses another stream has to wait for it.
#pragma once

#include <memory>

#include "framework/context.h"

struct CUstream_st;  // what cudaStream_t points to

namespace antichain::cuda {

using Stream = CUstream_st*;

struct Resources {
  int device = 0;
  Stream stream = nullptr;
  void* flag = nullptr;  // one number that kernels may set
  std::shared_ptr<void> cudnn, cublas;
};

inline Resources& resources(const Context& context) { return *static_cast<Resources*>(context.resources()); }
// The default stream where a context has none: tests that run these kernels on the host.
inline Stream stream_of(const Context& context) {
  return context.resources() ? resources(context).stream : nullptr;
}

}  // namespace antichain::cuda
