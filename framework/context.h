// A Context is where a kernel runs: a backend, a thread count, and scratch memory that calls reuse. Each rank
// has one.
#pragma once

#include <memory>

#include "framework/tensor.h"

namespace antichain {

class Backend;

class Context {
 public:
  // `local_rank`, the rank's number on this host, chooses the device where there are several.
  explicit Context(const Backend& backend, int threads = 1, int local_rank = 0);

  const Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }
  int local_rank() const { return local_rank_; }
  // Returns what the backend keeps for each context (Backend::open): streams and library handles, whose types
  // only the backend knows.
  void* resources() const { return resources_.get(); }

  // Returns at least `bytes` of device memory, 64-byte aligned, valid until the next call. The memory only
  // grows.
  std::byte* workspace(int64_t bytes);

 private:
  const Backend* backend_;
  int threads_, local_rank_;
  std::shared_ptr<void> resources_;
  std::shared_ptr<std::byte> workspace_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace antichain
