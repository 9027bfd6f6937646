// Gather takes one launch each way. Backward has a thread for each number of x, which adds up those of y that
// are copies of it, in double and in their order. The tables are in the device's memory.
#include "layers/gather.h"

#include "framework/cuda/launch.h"
#include "layers/cuda/fold_rows.h"
#include "layers/cuda/operators.h"
#include "layers/one_layout.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// The tables of GatherPlaces, one behind the other.
struct PlacesOnDevice {
  Index outer, extent, count, inner;
  const int32_t *table = nullptr, *starts = nullptr, *places = nullptr;

  explicit PlacesOnDevice(const GatherPlaces& p)
      : outer(index_of(p.outer)),
        extent(index_of(p.extent)),
        count(index_of(p.count)),
        inner(index_of(p.inner)) {
    index_of(p.outer * p.extent * p.inner);
    index_of(p.outer * p.count * p.inner);
  }
};

template <class T>
void take_places(Stream stream, const PlacesOnDevice& p, const T* x, T* y) {
  for_each(stream, int64_t(p.outer) * p.count * p.inner, [=] ANTICHAIN_DEVICE(Index i) {
    const Index row = i / p.inner;
    y[i] = x[(row / p.count * p.extent + Index(p.table[row % p.count])) * p.inner + i % p.inner];
  });
}

template <class T>
void add_places(Stream stream, const PlacesOnDevice& p, const T* dy, T* dx, bool adds) {
  for_each(stream, int64_t(p.outer) * p.extent * p.inner, [=] ANTICHAIN_DEVICE(Index i) {
    const Index row = i / p.inner, j = row % p.extent, first = row / p.extent * p.count;
    double sum = 0;
    for (int32_t at = p.starts[j]; at < p.starts[j + 1]; ++at)
      sum += double(float(dy[(first + Index(p.places[at])) * p.inner + i % p.inner]));
    const T fresh = T(float(sum));
    dx[i] = adds ? T(float(dx[i]) + float(fresh)) : fresh;
  });
}

template <class T>
class GatherKernel : public Kernel {
 public:
  GatherKernel(const Gather& op, const Shape& x) : places_(op, x), on_device_(places_) {}

  void prepare(Context& context, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    auto* to = prepared[0].data<int32_t>();
    for (const std::vector<int32_t>* list : {&places_.table, &places_.starts, &places_.places}) {
      put_numbers(stream_of(context), list->data(), std::ssize(*list), to);
      to += list->size();
    }
  }

  void forward(Context& context, const Forward& f) const override {
    take_places(stream_of(context), at(f.prepared), f.x[0].data<T>(), f.y.data<T>());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0])
      add_places(stream_of(context), at(b.prepared), b.dy.data<T>(), b.dx[0].data<T>(),
                 b.into_dx(0) == Into::accumulate);
  }

 private:
  PlacesOnDevice at(std::span<const Tensor> prepared) const {
    PlacesOnDevice p = on_device_;
    p.table = prepared[0].data<int32_t>();
    p.starts = p.table + p.count;
    p.places = p.starts + p.extent + 1;
    return p;
  }

  const GatherPlaces places_;
  const PlacesOnDevice on_device_;
};

}  // namespace

KernelEntry gather_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const auto& gather = static_cast<const Gather&>(op);
                Lowering l = in_one_layout(Layout::plain, precision);
                const int64_t numbers = 2 * std::ssize(gather.options.table) + x[0][gather.options.axis] + 1;
                l.prepared = {{.shape = {numbers}, .dtype = DType::i32}};
                return l;
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<GatherKernel>(x[0].dtype, static_cast<const Gather&>(op), x[0].shape);
              }};
}

}  // namespace antichain::cuda
