// This device of stand-ins allocates and has a stream, and computes nothing but what tests launch.
#pragma once

#include <memory>
#include <string>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_devices.h"

namespace antichain::test {

class IdleGpu : public Backend {
 public:
  std::string name() const override { return "fake"; }
  std::string description() const override { return "a fake GPU"; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override {
    return fake_cuda::device_memory(bytes);
  }
  std::shared_ptr<void> open(int local_rank) const override {
    return std::make_shared<cuda::Resources>(
        cuda::Resources{.device = local_rank, .stream = fake_cuda::make_stream()});
  }
  void copy(const Context&, const Tensor&, const Tensor&) const override {
    check_failed("copy", "nothing is copied here");
  }
  void add(Context&, const Tensor&, const Tensor&) const override {
    check_failed("add", "nothing is added here");
  }
};

}  // namespace antichain::test
