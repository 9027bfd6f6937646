// Permute reads x in the order of y; writes are coalesced. Backward writes dx in its own order and reads dy
// from where its numbers went.
#include "layers/permute.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/strided.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

using Axes = Strided<Shape::max_rank, Index>;
static_assert(sizeof Axes::extents[0] == 4, "no division of 64 bits");

template <class T>
void copy_from(Stream stream, const Axes& places, const T* from, T* to) {
  for_each(stream, places.elements(), [=] ANTICHAIN_DEVICE(Index i) { to[i] = from[places.at(i)]; });
}

// Returns the axes of the array `of`, innermost last, with the strides that they have in `in`, where the
// array's dimension i is number where[i].
Axes axes_of(const Shape& of, const Shape& in, const std::vector<int>& where) {
  int64_t strides[Shape::max_rank] = {};
  int64_t stride = 1;
  for (int i = in.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= in[i];
  }
  Strided<Shape::max_rank> axes;
  for (int i = 0; i < of.rank(); ++i) {
    axes.extents[Shape::max_rank - of.rank() + i] = of[i];
    axes.strides[Shape::max_rank - of.rank() + i] = strides[where[size_t(i)]];
  }
  return Axes(axes);
}

template <class T>
class PermuteKernel : public Kernel {
 public:
  PermuteKernel(const Permute& op, const Shape& x) {
    const Shape y = op.infer({&x, 1}).y.shape;
    index_of(x.elements());
    std::vector<int> inverse(op.order.size());
    for (size_t i = 0; i < inverse.size(); ++i) inverse[size_t(op.order[i])] = int(i);
    forward_ = axes_of(y, x, op.order);
    backward_ = axes_of(x, y, inverse);
  }

  void forward(Context& context, const Forward& f) const override {
    copy_from(stream_of(context), forward_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) copy_from(stream_of(context), backward_, b.dy.data<T>(), b.dx[0].data<T>());
  }

 private:
  Axes forward_, backward_;
};

}  // namespace

KernelEntry permute_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) { return Lowering{.x = {Layout::plain}, .precision = precision}; },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<PermuteKernel>(x[0].dtype, static_cast<const Permute&>(op), x[0].shape);
              }};
}

}  // namespace antichain::cuda
