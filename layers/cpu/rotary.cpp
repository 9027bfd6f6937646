// Rotary positions read cosines and sines from a table of the positions 0 … T − 1, of which a process has one
// for each theta and size, and compute those of other positions when they come. Backward reads positions that
// were an input from the stash, so that x need not be kept beside them.
#include "layers/rotary.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/rotary_loops.h"

namespace antichain::cpu {
namespace {

// Writes the cosines of a position's angles, and behind them the sines.
void put_angles(int64_t position, double theta, int64_t pairs, float* to) {
  for (int64_t i = 0; i < pairs; ++i) {
    const double angle = double(position) * std::pow(theta, -double(i) / double(pairs));
    to[i] = float(std::cos(angle));
    to[pairs + i] = float(std::sin(angle));
  }
}

using Angles = std::vector<float>;  // of each position

std::shared_ptr<const Angles> angles_of(int64_t positions, double theta, int64_t pairs) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, double, int64_t>, std::weak_ptr<const Angles>> tables;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Angles>& known = tables[{positions, theta, pairs}];
  if (auto table = known.lock()) return table;
  auto table = std::make_shared<Angles>(size_t(positions * 2 * pairs));
  for (int64_t p = 0; p < positions; ++p) put_angles(p, theta, pairs, table->data() + p * 2 * pairs);
  known = table;
  return table;
}

int64_t workspace_bytes(int threads, int64_t pairs) {
  return threads * Workspace::rounded(2 * pairs * int64_t(sizeof(float)));
}

template <class T>
class RotaryKernel : public Kernel {
 public:
  RotaryKernel(const Rotary& op, const Shape& x)
      : options_(op.options),
        samples_(x[0]),
        positions_(x[1]),
        pairs_(op.pairs(x)),
        angles_(angles_of(positions_, options_.theta, pairs_)),
        loops_(best_loops<RotaryLoops<T>>()) {}

  void forward(Context& context, const Forward& f) const override {
    const int32_t* positions = f.x.size() > 1 ? f.x[1].data<int32_t>() : nullptr;
    turn(context, f.x[0], positions, false, f.y);
    if (positions && !f.stash.empty()) std::copy_n(positions, f.x[1].elements(), f.stash[0].data<int32_t>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    turn(context, b.dy, b.stash.empty() ? nullptr : b.stash[0].data<int32_t>(), true, b.dx[0]);
  }

 private:
  void turn(Context& context, const Tensor& from, const int32_t* positions, bool back,
            const Tensor& to) const {
    const int64_t per_thread = workspace_bytes(1, pairs_), row = options_.heads * 2 * pairs_;
    std::byte* scratch = context.workspace(workspace_bytes(context.threads(), pairs_));
    for_each_plane(samples_ * positions_, context.threads(), [&](int64_t i) {
      const int64_t position = positions ? positions[i] : i % positions_;
      auto* own = reinterpret_cast<float*>(scratch + omp_get_thread_num() * per_thread);
      const bool known = position >= 0 && position < positions_;
      if (!known) put_angles(position, options_.theta, pairs_, own);
      const float* cosines = known ? angles_->data() + position * 2 * pairs_ : own;
      for (int64_t channel = i * row; channel < (i + 1) * row; channel += 2 * pairs_)
        loops_.turn(from.data<T>() + channel, cosines, cosines + pairs_, pairs_, options_.interleaved, back,
                    to.data<T>() + channel);
    });
  }

  const RotaryOptions options_;
  const int64_t samples_, positions_, pairs_;
  const std::shared_ptr<const Angles> angles_;
  const RotaryLoops<T>& loops_;
};

std::vector<TensorSpec> stash_of(std::span<const Shape> x) {
  if (x.size() == 1) return {};
  return {{.shape = x[1], .dtype = DType::i32}};
}

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
  return {
      .x = std::vector<Layout>(x.size(), Layout::plain),
      .precision = precision,
      .stash = stash_of(x),
      .workspace_bytes = workspace_bytes(omp_get_max_threads(), dynamic_cast<const Rotary&>(op).pairs(x[0]))};
}

}  // namespace

KernelEntry rotary_entry() {
  return {.lower = lower, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<RotaryKernel>(x[0].dtype, dynamic_cast<const Rotary&>(op), x[0].shape);
          }};
}

}  // namespace antichain::cpu
