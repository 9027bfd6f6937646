#include "framework/context.h"

#include "framework/backend.h"

namespace antichain {

Context::Context(const Backend& backend, int threads, int local_rank)
    : backend_(&backend), threads_(threads), local_rank_(local_rank), resources_(backend.open(local_rank)) {}

std::byte* Context::workspace(int64_t bytes) {
  if (bytes > workspace_bytes_) {
    workspace_.reset();  // never both at once
    workspace_ = backend_->allocate(bytes);
    workspace_bytes_ = bytes;
  }
  return workspace_.get();
}

}  // namespace antichain
