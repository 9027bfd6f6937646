// Slice copies runs of elements; images are in NHWC.
#include "layers/slice.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/one_layout.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// SliceRuns in the numbers that kernels divide fast.
struct Runs {
  Index rows, row, first, count, run, stride;

  explicit Runs(const SliceRuns& r)
      : rows(index_of(r.rows)),
        row(index_of(r.row)),
        first(index_of(r.first)),
        count(index_of(r.count)),
        run(index_of(r.run)),
        stride(index_of(r.stride)) {
    index_of(r.rows * r.row);
  }

  int64_t taken() const { return int64_t(rows) * count * run; }
  // Returns where element i of y lies in x.
  ANTICHAIN_ANYWHERE Index in_x(Index i) const {
    return i / run / count * row + first + i / run % count * stride + i % run;
  }
};

template <class T>
void take(Stream stream, const Runs& runs, const T* x, T* y) {
  for_each(stream, runs.taken(), [=] ANTICHAIN_DEVICE(Index i) { y[i] = x[runs.in_x(i)]; });
}

template <class T>
void add_part(Stream stream, const Runs& runs, const T* dy, T* dx) {
  for_each(stream, runs.taken(), [=] ANTICHAIN_DEVICE(Index i) {
    T& to = dx[runs.in_x(i)];
    to = T(float(to) + float(dy[i]));
  });
}

// The rest of dx is overwritten by −0, to which any number can be added without changing. So the pass of
// another slice adds to its own part alone.
template <class T>
void spread(Stream stream, const Runs& runs, const T* dy, T* dx) {
  for_each(stream, int64_t(runs.rows) * runs.row, [=] ANTICHAIN_DEVICE(Index i) {
    const Index row = i / runs.row, at = i % runs.row - runs.first;  // huge before the first run
    const Index r = at / runs.stride, of_run = at % runs.stride;
    const bool is_taken = i % runs.row >= runs.first && r < runs.count && of_run < runs.run;
    dx[i] = is_taken ? dy[(row * runs.count + r) * runs.run + of_run] : T(-0.0f);
  });
}

template <class T>
class SliceKernel : public Kernel {
 public:
  SliceKernel(const Slice& op, const TensorSpec& x) : runs_(runs_of(op, x)) {}

  void forward(Context& context, const Forward& f) const override {
    take(stream_of(context), runs_, f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    if (b.into_dx(0) == Into::accumulate)
      add_part(stream_of(context), runs_, dy, dx);
    else
      spread(stream_of(context), runs_, dy, dx);
  }

 private:
  const Runs runs_;
};

}  // namespace

KernelEntry slice_entry() {
  return {.lower = [](const Op&, std::span<const Shape> x, std::span<const Layout>,
                      Precision precision) { return in_one_layout(layout_of(x[0]), precision); },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<SliceKernel>(x[0].dtype, static_cast<const Slice&>(op), x[0]);
              }};
}

}  // namespace antichain::cuda
