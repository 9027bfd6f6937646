// These copies pass everything on. A test overrides what it wants to see, or to have forgotten.
#pragma once

#include <memory>
#include <utility>

#include "pipeline/device/device_streams.h"

namespace antichain::test {

class CopiesBetween : public CopyStream {
 public:
  explicit CopiesBetween(std::unique_ptr<CopyStream> copies) : copies_(std::move(copies)) {}
  Moment computed() override { return copies_->computed(); }
  void compute_after(const Moment& moment) override { copies_->compute_after(moment); }
  bool reached(const Moment& moment) override { return copies_->reached(moment); }
  std::shared_ptr<std::byte> page_locked(int64_t bytes) override { return copies_->page_locked(bytes); }
  Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) override {
    return copies_->to_host(from, host, after);
  }
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override {
    return copies_->to_device(host, to, after);
  }

 protected:
  const std::unique_ptr<CopyStream> copies_;
};

}  // namespace antichain::test
