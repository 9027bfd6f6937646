// Reorders between NCHW (plain) and NHWC, between float32 and bf16, or both: forward from the producer's form
// to the consumer's, backward from the consumer's to the producer's. Writes are coalesced; reads are strided
// and meet in the cache.
#include "framework/reorder.h"

#include <string>

#include "framework/cuda/passes.h"
#include "layers/cuda/convert.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {

template <class T, class U>
void convert(Stream stream, int64_t count, const T* from, U* to) {
  for_elements(
      stream, count, [=] ANTICHAIN_DEVICE(Index, float number, float& copy) { copy = number; }, read(from),
      write(to));
}

template void convert(Stream, int64_t, const float*, Bf16*);
template void convert(Stream, int64_t, const Bf16*, float*);

namespace {

template <class T, class U>
void to_nhwc(Stream stream, const Image& image, const T* nchw, U* nhwc) {
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index pixels = image.height * image.width, pixel = i / image.channels % pixels;
    nhwc[i] = U(float(nchw[(image.image(i) * image.channels + image.channel(i)) * pixels + pixel]));
  });
}

template <class T, class U>
void to_nchw(Stream stream, const Image& image, const T* nhwc, U* nchw) {
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index pixels = image.height * image.width, plane = i / pixels;
    const Index n = plane / image.channels, c = plane % image.channels;
    nchw[i] = U(float(nhwc[(n * pixels + i % pixels) * image.channels + c]));
  });
}

// Copies T in layout `from` to U in layout `to`.
template <class T, class U>
void reorder(Stream stream, const Shape& shape, Layout from, Layout to, const T* x, U* y) {
  if (from == to) return convert(stream, shape.elements(), x, y);
  to == Layout::nhwc ? to_nhwc(stream, Image(shape), x, y) : to_nchw(stream, Image(shape), x, y);
}

void reorder(Context& context, const Tensor& from, const Tensor& to) {
  const auto copy = [&]<class T>() {
    with_type(to.dtype(), [&]<class U>() {
      reorder(stream_of(context), to.shape(), from.layout(), to.layout(), from.data<T>(), to.data<U>());
    });
  };
  from.dtype() == DType::i32 ? copy.template operator()<int32_t>() : with_type(from.dtype(), copy);
}

class ReorderKernel : public Kernel {
 public:
  void forward(Context& context, const Forward& f) const override { reorder(context, f.x[0], f.y); }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) reorder(context, b.dy, b.dx[0]);
  }
};

}  // namespace

KernelEntry reorder_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape>, std::span<const Layout> offered, Precision precision) {
                const Layout to = dynamic_cast<const Reorder&>(op).to;
                const auto known = [](Layout l) { return l == Layout::plain || l == Layout::nhwc; };
                ANTICHAIN_CHECK(known(to) && known(offered[0]),
                                "the cuda engine knows the layouts plain and nhwc, not " +
                                    std::string(name_of(offered[0])) + " and " + std::string(name_of(to)));
                return Lowering{.x = {offered[0]}, .y = to, .precision = precision};
              },
          .make = [](const Op&, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<ReorderKernel>();
          }};
}

}  // namespace antichain::cuda
