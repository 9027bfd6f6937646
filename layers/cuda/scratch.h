// Scratch hands out aligned pieces of one call's workspace, and adds up in advance how much they need.
#pragma once

#include "framework/context.h"
#include "framework/error.h"

namespace antichain::cuda {

class Scratch {
 public:
  static constexpr int64_t alignment = 256;
  static int64_t rounded(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  // cudaMalloc aligns to 256 bytes. Host memory, where tests run these kernels, aligns to 64, which is enough
  // there.
  Scratch(Context& context, int64_t bytes)
      : next_(bytes > 0 ? context.workspace(bytes) : nullptr), left_(bytes) {}

  template <class T>
  T* take(int64_t count) {
    const int64_t bytes = rounded(count * int64_t(sizeof(T)));
    ANTICHAIN_CHECK(bytes <= left_, "a kernel asks for as much workspace as it takes");
    std::byte* taken = next_;
    next_ += bytes;
    left_ -= bytes;
    return reinterpret_cast<T*>(taken);
  }

 private:
  std::byte* next_;
  int64_t left_;
};

}  // namespace antichain::cuda
