// Reorder between NCHW (plain) and NHWC: forward from the producer's layout to the consumer's, backward the other way
// round. Writes are coalesced; reads are strided and meet in the cache.
#include "framework/reorder.h"

#include <string>

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/transpose.h"

namespace antichain::cuda {

void to_nhwc(Stream stream, const Image& image, const float* nchw, float* nhwc) {
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index pixels = image.height * image.width, pixel = i / image.channels % pixels;
    nhwc[i] = nchw[(image.image(i) * image.channels + image.channel(i)) * pixels + pixel];
  });
}

void to_nchw(Stream stream, const Image& image, const float* nhwc, float* nchw) {
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index pixels = image.height * image.width, plane = i / pixels;
    const Index n = plane / image.channels, c = plane % image.channels;
    nchw[i] = nhwc[(n * pixels + i % pixels) * image.channels + c];
  });
}

namespace {

class ReorderKernel : public Kernel {
 public:
  ReorderKernel(const Shape& x, Layout to) : x_(x), to_nhwc_(to == Layout::nhwc) {}

  void forward(Context& context, const Forward& f) const override {
    run(context, to_nhwc_, f.x[0].data<float>(), f.y.data<float>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) run(context, !to_nhwc_, b.dy.data<float>(), b.dx[0].data<float>());
  }

 private:
  void run(Context& context, bool nhwc, const float* from, float* to) const {
    nhwc ? to_nhwc(stream_of(context), x_, from, to) : to_nchw(stream_of(context), x_, from, to);
  }

  const Image x_;
  const bool to_nhwc_;
};

}  // namespace

KernelEntry reorder_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape>, std::span<const Layout> offered, Precision) {
            const Layout to = dynamic_cast<const Reorder&>(op).to;
            const auto known = [](Layout l) { return l == Layout::plain || l == Layout::nhwc; };
            ANTICHAIN_CHECK(known(to) && known(offered[0]),
                            "the cuda engine knows the layouts plain and nhwc, not " +
                                std::string(name_of(offered[0])) + " and " + std::string(name_of(to)));
            return Lowering{.x = {offered[0]}, .y = to};
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<ReorderKernel>(x[0].shape, dynamic_cast<const Reorder&>(op).to);
      }};
}

}  // namespace antichain::cuda
