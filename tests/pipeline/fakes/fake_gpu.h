// This is a device of stand-ins: the CPU's kernels, launched into streams of the fake CUDA runtime
// (fake_cuda.h), which does them late and in any order that the streams allow. So whole steps run through the
// runner's device side and the code of pipeline/cuda, and what was not waited for gives other bits than the
// CPU.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "pipeline/device/device_streams.h"

struct CUstream_st;

namespace antichain::cuda {
struct Piece;
// These are framework/cuda/look.cu and data/cuda/make_images.cu, compiled for the host.
void look_now(CUstream_st*, const Piece*, int64_t, int32_t*);
void make_images_now(CUstream_st*, const Tensor& raw, const Tensor& table, const Tensor& images);
}  // namespace antichain::cuda

namespace antichain::test {

class FakeGpu : public Backend {
 public:
  FakeGpu();
  // Registers the only one and its streams, as a module does, and returns it.
  static FakeGpu& the();

  static const std::vector<const char*> operators;

  std::string name() const override { return "fake_gpu"; }
  std::string description() const override { return "the CPU's kernels in fake streams"; }
  bool host_memory() const override { return false; }
  void require(Precision) const override;
  void enter(const Context&) const override;
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override;
  std::shared_ptr<void> open(int local_rank) const override;
  void copy(const Context&, const Tensor& from, const Tensor& to) const override;
  std::unique_ptr<Absorption> make_absorption(const Context&, std::vector<Absorbed>) const override;
  void add(Context&, const Tensor& x, const Tensor& y) const override;

  int copies() const { return copies_; }           // that the host waited for
  CUstream_st* stream() const { return stream_; }  // of the context opened last
  // Puts something of the test's between the runner and the copies.
  std::function<std::unique_ptr<CopyStream>(std::unique_ptr<CopyStream>)> around_copies;
  // How long work takes on a device that keeps time, asked when the host starts it: "conv2d forward", "conv2d
  // input" and "conv2d weight" (the halves of a backward), "update" (of one parameter), "add", else "". Where
  // it is empty, nothing takes time.
  std::function<double(const std::string& work)> takes_s;

 private:
  mutable std::atomic<int> copies_{0};
  mutable std::atomic<CUstream_st*> stream_{nullptr};
};

}  // namespace antichain::test
