// A class token takes one launch forward, and one for each gradient.
#include "layers/class_token.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Tokens {
  Index samples, of_x, width;  // of_x: numbers of a sample of x

  explicit Tokens(const Shape& x)
      : samples(index_of(x[0])), of_x(index_of(x[1] * x[2])), width(index_of(x[2])) {
    index_of(x[0] * (x[1] + 1) * x[2]);
  }
  ANTICHAIN_ANYWHERE Index of_y() const { return of_x + width; }
};

template <class T>
void put_first(Stream stream, const Tokens& t, const float* token, const T* x, T* y) {
  for_each(stream, int64_t(t.samples) * t.of_y(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index sample = i / t.of_y(), at = i % t.of_y();
    y[i] = at < t.width ? T(token[at]) : x[sample * t.of_x + at - t.width];
  });
}

template <class T>
void token_gradient(Stream stream, const Tokens& t, const T* dy, float* dw, bool adds) {
  for_each(stream, t.width, [=] ANTICHAIN_DEVICE(Index c) {
    double sum = 0;
    for (Index n = 0; n < t.samples; ++n) sum += double(float(dy[n * t.of_y() + c]));
    dw[c] = adds ? dw[c] + float(sum) : float(sum);
  });
}

template <class T>
void take_rest(Stream stream, const Tokens& t, const T* dy, T* dx, bool adds) {
  for_each(stream, int64_t(t.samples) * t.of_x, [=] ANTICHAIN_DEVICE(Index i) {
    const T number = dy[i / t.of_x * t.of_y() + t.width + i % t.of_x];
    dx[i] = adds ? T(float(dx[i]) + float(number)) : number;
  });
}

template <class T>
class ClassTokenKernel : public Kernel {
 public:
  explicit ClassTokenKernel(const Shape& x) : tokens_(x) {}

  void forward(Context& context, const Forward& f) const override {
    put_first(stream_of(context), tokens_, f.params[0].data<float>(), f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    const T* dy = b.dy.data<T>();
    if (!b.dw.empty() && b.dw[0])
      token_gradient(stream_of(context), tokens_, dy, b.dw[0].data<float>(), b.into == Into::accumulate);
    if (!b.dx.empty() && b.dx[0])
      take_rest(stream_of(context), tokens_, dy, b.dx[0].data<T>(), b.into_dx(0) == Into::accumulate);
  }

 private:
  const Tokens tokens_;
};

}  // namespace

KernelEntry class_token_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) -> Lowering {
            return {.x = {Layout::plain}, .params = {Layout::plain}, .precision = precision, .adds_dx = true};
          },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ClassTokenKernel>(x[0].dtype, x[0].shape); }};
}

}  // namespace antichain::cuda
