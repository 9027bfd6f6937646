// Where a kernel runs: a backend, a thread count, and scratch memory that calls reuse. One per rank.
#pragma once

#include <memory>

#include "framework/tensor.h"

namespace antichain {

class Backend;

class Context {
 public:
  explicit Context(const Backend& backend, int threads = 1);

  const Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }

  // At least `bytes` of device memory, 64-byte aligned, valid until the next call. Grows only.
  std::byte* workspace(int64_t bytes);

 private:
  const Backend* backend_;
  int threads_;
  std::shared_ptr<std::byte> workspace_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace antichain
