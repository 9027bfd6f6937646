// Joins channels: per image, the channel blocks of each input are one run of bytes. That holds in a blocked
// layout too, if every input except the last fills its blocks; otherwise the plain layout is requested.
#include "layers/concat.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

// Returns the bytes of one image of a tensor, padding channels included.
int64_t image_bytes(const TensorSpec& spec) { return spec.bytes() / spec.shape[0]; }

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(std::span<const TensorSpec> x) {
    for (const TensorSpec& spec : x) {
      starts_.push_back(image_);
      image_ += image_bytes(spec);
    }
  }

  void forward(Context& context, const Forward& f) const override {
    for (size_t i = 0; i < f.x.size(); ++i) {
      const int64_t bytes = image_bytes(f.x[i].spec());
      for_each_plane(f.y.shape()[0], context.threads(), [&](int64_t n) {
        std::memcpy(f.y.raw() + n * image_ + starts_[i], f.x[i].raw() + n * bytes, size_t(bytes));
      });
    }
  }

  void backward(Context& context, const Backward& b) const override {
    for (size_t i = 0; i < b.dx.size(); ++i) {
      if (!b.dx[i]) continue;
      const int64_t bytes = image_bytes(b.dx[i].spec());
      for_each_plane(b.dy.shape()[0], context.threads(), [&](int64_t n) {
        const std::byte* from = b.dy.raw() + n * image_ + starts_[i];
        std::byte* to = b.dx[i].raw() + n * bytes;
        if (b.into_dx(i) == Into::overwrite)
          std::memcpy(to, from, size_t(bytes));
        else
          with_type(b.dy.dtype(), [&]<class T>() {
            elementwise_loops<T>().accumulate(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to),
                                              bytes / int64_t(sizeof(T)));
          });
      });
    }
  }

 private:
  std::vector<int64_t> starts_;  // of each input within an image of y, in bytes
  int64_t image_ = 0;            // bytes of an image of y
};

// Returns the first blocked layout offered, if the channels allow it.
Layout joint_layout(std::span<const Shape> x, std::span<const Layout> offered) {
  for (Layout layout : offered) {
    if (layout == Layout::plain || layout == Layout::nhwc) continue;
    const int64_t block = Activation::block_of(layout);
    const auto fills = [&](const Shape& shape) { return shape[1] % block == 0; };
    return std::all_of(x.begin(), x.end() - 1, fills) ? layout : Layout::plain;
  }
  return Layout::plain;
}

}  // namespace

KernelEntry concat_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                const Layout layout = joint_layout(x, offered);
                return Lowering{.x = std::vector<Layout>(x.size(), layout),
                                .y = layout,
                                .precision = precision,
                                .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ConcatKernel>(x);
          }};
}

}  // namespace antichain::cpu
