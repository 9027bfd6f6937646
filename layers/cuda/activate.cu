// Activation functions work element by element, on any shape and layout.
#include "layers/activate.h"

#include "framework/cuda/passes.h"
#include "layers/cuda/activation_formulas.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class Formula, class T>
void activate(Stream stream, int64_t count, const T* x, T* y) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float before, float& after) { after = Formula::value(before); }, read(x),
      write(y));
}

template <class Formula, class T>
void activate_gradient(Stream stream, int64_t count, const T* kept, const T* dy, T* dx, bool adds) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float before, float gradient, float& sum) {
        const float fresh = Formula::gradient(before, gradient);
        // A term of a sum is rounded for storage before it is added, as where another kernel adds it.
        sum = adds ? sum + float(T(fresh)) : fresh;
      },
      read(kept), read(dy), into(dx, adds));
}

template <class T>
class ActivateKernel : public Kernel {
 public:
  explicit ActivateKernel(ActivationFunction function) : function_(function) {}

  void forward(Context& context, const Forward& f) const override {
    formulas::with_formula(function_, [&]<class Formula>() {
      activate<Formula>(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.y.data<T>());
    });
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* kept = (derives_from_y(function_) ? b.y : b.x[0]).data<T>();
    formulas::with_formula(function_, [&]<class Formula>() {
      activate_gradient<Formula>(stream_of(context), b.dy.elements(), kept, b.dy.data<T>(), b.dx[0].data<T>(),
                                 b.into_dx(0) == Into::accumulate);
    });
  }

 private:
  const ActivationFunction function_;
};

}  // namespace

KernelEntry activate_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const bool from_y = derives_from_y(static_cast<const Activate&>(op).function);
                const Layout layout = layout_of(x[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .precision = precision,
                                .keeps_x = !from_y,
                                .keeps_y = from_y,
                                .adds_dx = true};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<ActivateKernel>(x[0].dtype, static_cast<const Activate&>(op).function);
              }};
}

}  // namespace antichain::cuda
