// Resources are what a context on a CUDA device carries: the device's number, the stream on which all work of
// one rank runs in order, and the handles of libraries, which are made on first use.
//
// The stream is non-blocking: CUDA orders it with no other stream, so that it can be recorded while other
// ranks' threads copy and allocate. Code that uses another stream has to wait for this one.
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
// Returns the default stream where a context has none: tests run these kernels on the host.
inline Stream stream_of(const Context& context) {
  return context.resources() ? resources(context).stream : nullptr;
}

}  // namespace antichain::cuda
