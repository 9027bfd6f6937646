// Rotary positions take one thread for each pair of channels of a position, which turns that pair of every
// head by one angle.
#include "layers/rotary.h"

#include <cmath>
#include <vector>

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct RotaryHeads {
  Index positions, pairs, heads;
  double theta;
  bool interleaved;
};

// `positions`, which may be nullptr, are copied to `kept`, which may be nullptr, too.
template <class T>
void turn_pairs(Stream stream, int64_t samples, const RotaryHeads& of, const int32_t* positions,
                int32_t* kept, bool back, const T* from, T* to) {
  for_each(stream, samples * of.positions * of.pairs, [=] ANTICHAIN_DEVICE(Index i) {
    const Index place = i / of.pairs, pair = i % of.pairs;
    const int32_t position = positions ? positions[place] : int32_t(place % of.positions);
    if (kept && pair == 0) kept[place] = position;
    const double angle = double(position) * pow(of.theta, -double(pair) / double(of.pairs));
    const float cosine = float(cos(angle)), sine = back ? -float(sin(angle)) : float(sin(angle));
    const Index step = of.interleaved ? 1 : of.pairs;
    Index first = place * of.heads * 2 * of.pairs + (of.interleaved ? 2 * pair : pair);
    for (Index head = 0; head < of.heads; ++head, first += 2 * of.pairs) {
      const float a = from[first], b = from[first + step];
      to[first] = T(a * cosine - b * sine);
      to[first + step] = T(b * cosine + a * sine);
    }
  });
}

template <class T>
class RotaryKernel : public Kernel {
 public:
  RotaryKernel(const Rotary& op, const Shape& x)
      : samples_(x[0]),
        heads_{index_of(x[1]), index_of(op.pairs(x)), Index(op.options.heads), op.options.theta,
               op.options.interleaved} {
    index_of(x.elements());
  }

  void forward(Context& context, const Forward& f) const override {
    turn_pairs(stream_of(context), samples_, heads_, f.x.size() > 1 ? f.x[1].data<int32_t>() : nullptr,
               f.stash.empty() ? nullptr : f.stash[0].data<int32_t>(), false,
               static_cast<const T*>(f.x[0].data<T>()), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    turn_pairs(stream_of(context), samples_, heads_, b.stash.empty() ? nullptr : b.stash[0].data<int32_t>(),
               nullptr, true, static_cast<const T*>(b.dy.data<T>()), b.dx[0].data<T>());
  }

 private:
  const int64_t samples_;
  const RotaryHeads heads_;
};

// Positions that are an input are kept in the stash, so that x need not be kept beside them.
Lowering lower_rotary(const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
  Lowering l{.x = std::vector<Layout>(x.size(), Layout::plain), .precision = precision};
  if (x.size() > 1) l.stash = {{.shape = x[1], .dtype = DType::i32}};
  return l;
}

}  // namespace

KernelEntry rotary_entry() {
  return {.lower = lower_rotary, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<RotaryKernel>(x[0].dtype, dynamic_cast<const Rotary&>(op), x[0].shape);
          }};
}

}  // namespace antichain::cuda
