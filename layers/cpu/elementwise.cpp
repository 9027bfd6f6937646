// Elementwise takes one pass over memory. Tiles of numbers go through the steps one after the other, so that
// what lies between two steps stays in the first-level cache. Backward computes a tile's steps again, and
// then their gradients from the last to the first.
//
// Where all tensors have one shape, they are worked on in memory order, in any layout. Operands that are
// repeated want the plain layout. The sums over their elements are those of one sample each, from start to
// end on one thread; a parameter's are added up in the order of the samples.
#include "layers/elementwise.h"

#include <algorithm>
#include <optional>

#include "framework/context.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/elementwise_steps.h"
#include "layers/cpu/for_each_range.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/read_ahead.h"
#include "layers/formula_loss.h"

namespace antichain::cpu {
namespace {

using Program = ElementwiseProgram;
constexpr int64_t tile = tile_numbers;

// Calls f(offset of the operand, numbers, stride) for the runs of neighbours of the elements [begin, end) of
// y.
template <class F>
void for_each_run(const Repeated& r, int64_t begin, int64_t end, F&& f) {
  const int inner = r.axes - 1;
  for (int64_t i = begin; i < end;) {
    int64_t at = 0, rest = i;
    for (int axis = inner; axis >= 0; --axis) {
      at += rest % r.extents[size_t(axis)] * r.strides[size_t(axis)];
      rest /= r.extents[size_t(axis)];
    }
    const int64_t in_row = i % r.extents[size_t(inner)];
    const int64_t run = std::min(r.extents[size_t(inner)] - in_row, end - i);
    f(at, run, r.strides[size_t(inner)]);
    i += run;
  }
}

constexpr float zeros[tile] = {};
constexpr PlacesRead every_place = [] {
  PlacesRead all{};
  all.fill(true);
  return all;
}();

// Tile has the numbers of one tile for every place of the program, and their gradients: where they are now,
// and memory of their own. A gradient is `zeros` until the first step adds to it.
struct Tile {
  alignas(64) float values[Program::places][tile];
  alignas(64) float gradients[Program::places][tile];
  const float* value[Program::places];
  const float* gradient[Program::places];
  float* to[Program::places];  // where the gradient is written
};

template <class T>
class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(const Elementwise& op, std::span<const TensorSpec> x)
      : program_(op.program), read_(read_by_backward(op.program)), loops_(best_loops<ElementwiseSteps>()) {
    std::vector<Shape> shapes;
    for (const TensorSpec& spec : x) shapes.push_back(spec.shape);
    operands_ = repeated(op, shapes);
    samples_ = shapes[0][0];
    sample_ = op.infer(shapes).y.shape.elements() / samples_;
    if (x[0].layout != Layout::plain) {
      padded_.emplace(x[0]);
      samples_ = 1;
      sample_ = x[0].elements();
    }
  }

  void forward(Context& context, const Forward& f) const override {
    for_each_range(samples_ * sample_, context.threads(), [&](int64_t begin, int64_t end) {
      Tile t;
      put_numbers(t);
      for (int64_t i = begin; i < end; i += tile) {
        const int64_t n = std::min(tile, end - i);
        compute(t, every_place, f.x, f.params, i, n, in_place(f.y.data<T>() + i));
        store(t.value[program_.result()], f.y.data<T>() + i, false, n);
      }
    });
    if (padded_) clear_padding(*padded_, f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    go_back(context, b, {b.dy.data<T>(), {.whole = true}});
  }

 protected:
  // The gradient of y: a tensor of its shape, or one number for all elements.
  struct OutputGradient {
    T* at;
    Repeated repeated;
  };

  void go_back(Context& context, const Backward& b, const OutputGradient& dy) const {
    const Wanted wanted = wanted_of(b);
    if (wanted.none()) return;
    if (!wanted.sums()) {
      for_each_range(samples_ * sample_, context.threads(),
                     [&](int64_t begin, int64_t end) { go_back(b, dy, wanted, begin, end, {}); });
    } else {
      const int64_t sums = wanted.sample_sums;
      auto* all = reinterpret_cast<double*>(context.workspace(samples_ * sums * int64_t(sizeof(double))));
      for_each_plane(samples_, context.threads(), [&](int64_t n) {
        const std::span<double> of_sample(all + n * sums, size_t(sums));
        std::ranges::fill(of_sample, 0.0);
        go_back(b, dy, wanted, n * sample_, (n + 1) * sample_, of_sample);
        put_sums(b, wanted, n, of_sample);
      });
      if (wanted.parameter && !whole(Program::parameter)) add_up(b, wanted, all);
    }
    for (size_t i = 0; padded_ && i < b.dx.size(); ++i)
      if (b.dx[i]) clear_padding(*padded_, b.dx[i].data<T>());
  }

  // Says which gradients a call wants, and where the sums of a sample lie for those that are summed.
  struct Wanted {
    std::array<bool, Program::places> place{};      // and for steps: whether a wanted gradient passes through
    std::array<int64_t, Program::places> sum_at{};  // -1: written element by element
    int64_t sample_sums = 0;
    bool parameter = false;

    bool none() const { return std::ranges::find(place, true) == place.end(); }
    bool sums() const { return sample_sums > 0; }
  };

  int leaves() const { return program_.inputs + int(program_.has_parameter); }
  int place(int operand) const { return operand < program_.inputs ? operand : Program::parameter; }
  const Repeated& of_place(int place) const {
    return operands_[size_t(place == Program::parameter ? program_.inputs : place)];
  }
  // A parameter has no samples, so its gradient is a sum wherever there is more than one.
  bool whole(int place) const { return place != Program::parameter && of_place(place).whole; }
  int64_t sums_of(int place) const {
    const Repeated& r = of_place(place);
    return place == Program::parameter ? r.elements : r.elements / samples_;
  }

  Wanted wanted_of(const Backward& b) const {
    Wanted wanted;
    wanted.sum_at.fill(-1);
    for (int i = 0; i < leaves(); ++i) {
      const bool is_parameter = place(i) == Program::parameter;
      const std::span<const Tensor> gradients = is_parameter ? b.dw : b.dx;
      const size_t index = is_parameter ? 0 : size_t(i);
      if (index >= gradients.size() || !gradients[index]) continue;
      wanted.place[size_t(place(i))] = true;
      if (is_parameter) wanted.parameter = true;
      if (whole(place(i))) continue;
      wanted.sum_at[size_t(place(i))] = wanted.sample_sums;
      wanted.sample_sums += sums_of(place(i));
    }
    for (int s = 0; s < program_.steps; ++s)
      for (const uint8_t operand : program_.step[s].operands)
        if (wanted.place[operand]) wanted.place[size_t(Program::first_step + s)] = true;
    return wanted;
  }

  // Returns the memory of float32 numbers, which need no copy; nullptr of others.
  static float* in_place(float* at) { return at; }
  static float* in_place(Bf16*) { return nullptr; }

  void put_numbers(Tile& t) const {
    for (int place = 0; place < Program::places; ++place) t.value[place] = t.values[place];
    for (int i = 0; i < program_.numbers; ++i)
      std::fill_n(t.values[Program::first_number + i], tile, program_.number[i]);
  }

  // Returns the operand's numbers for n elements of y, in its own memory or in that of `to`.
  template <class N>
  static const float* load(const Repeated& r, N* from, float* to, int64_t begin, int64_t n) {
    if (r.whole) {
      read_ahead(from + begin);
      if (const float* at = in_place(from + begin)) return at;
      for (int64_t i = 0; i < n; ++i) to[i] = float(from[begin + i]);
      return to;
    }
    float* next = to;
    for_each_run(r, begin, begin + n, [&](int64_t at, int64_t run, int64_t stride) {
      if (stride == 0)
        std::fill_n(next, run, float(from[at]));
      else
        for (int64_t i = 0; i < run; ++i) next[i] = float(from[at + i]);
      next += run;
    });
    return to;
  }

  // Computes the values of the wanted places for n elements of y; the last one goes to y where that is given.
  void compute(Tile& t, const PlacesRead& wanted, std::span<const Tensor> x, std::span<const Tensor> params,
               int64_t begin, int64_t n, float* y = nullptr) const {
    if (y) own_lines(y);
    for (size_t i = 0; i < size_t(program_.inputs); ++i)
      if (wanted[i]) t.value[i] = load(operands_[i], x[i].data<T>(), t.values[i], begin, n);
    if (program_.has_parameter && wanted[Program::parameter])
      t.value[Program::parameter] =
          load(operands_.back(), params[0].data<float>(), t.values[Program::parameter], begin, n);
    for (int s = 0; s < program_.steps; ++s) {
      const Program::Step& step = program_.step[s];
      const int me = Program::first_step + s;
      if (!wanted[size_t(me)]) continue;
      float* to = y && me == program_.result() ? y : t.values[me];
      loops_.value(step.function, operands_of(t, step).data(), to, n);
      t.value[me] = to;
    }
  }

  static std::array<const float*, 3> operands_of(const Tile& t, const Program::Step& step) {
    return {t.value[step.operands[0]], t.value[step.operands[1]], t.value[step.operands[2]]};
  }

  // A term of a sum is rounded for storage before it is added.
  static void store(const float* from, T* to, bool adds, int64_t n) {
    if (adds)
      for (int64_t i = 0; i < n; ++i) to[i] = T(to[i] + T(from[i]));
    else if (in_place(to) != from)
      for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
  }

  void go_back(const Backward& b, const OutputGradient& dy, const Wanted& wanted, int64_t begin, int64_t end,
               std::span<double> sums) const {
    Tile t;
    put_numbers(t);
    for (int64_t i = begin; i < end; i += tile) {
      const int64_t n = std::min(tile, end - i);
      compute(t, read_, b.x, b.made_by(), i, n);
      if (program_.has_parameter && !b.forward_params.empty() && read_[Program::parameter])
        t.value[Program::parameter] =
            load(operands_.back(), b.params[0].data<float>(), t.values[Program::parameter], i, n);
      for (int place = 0; place < Program::places; ++place) {
        t.gradient[place] = zeros;
        t.to[place] = t.gradients[place];
      }
      for (int k = 0; k < program_.inputs; ++k)
        if (wanted.place[size_t(k)] && whole(k) && b.into_dx(size_t(k)) == Into::overwrite)
          if (float* dx = in_place(b.dx[size_t(k)].data<T>() + i)) own_lines(t.to[k] = dx);
      t.gradient[program_.result()] = load(dy.repeated, dy.at, t.gradients[program_.result()], i, n);
      for (int s = program_.steps - 1; s >= 0; --s) go_back(t, wanted, s, n);
      for (int k = 0; k < leaves(); ++k) put(t, b, wanted, place(k), i, n, sums);
    }
  }

  void go_back(Tile& t, const Wanted& wanted, int s, int64_t n) const {
    const int me = Program::first_step + s;
    if (!wanted.place[size_t(me)]) return;
    const Program::Step& step = program_.step[s];
    for (int k = 0; k < step.count; ++k)
      if (const int to = step.operands[k]; wanted.place[size_t(to)]) {
        loops_.gradient(step.function, k, operands_of(t, step).data(), t.value[me], t.gradient[me],
                        t.gradient[to], t.to[to], n);
        t.gradient[to] = t.to[to];
      }
  }

  void put(const Tile& t, const Backward& b, const Wanted& wanted, int place, int64_t begin, int64_t n,
           std::span<double> sums) const {
    if (!wanted.place[size_t(place)]) return;
    const float* from = t.gradient[place];
    if (whole(place))
      return store(from, b.dx[size_t(place)].data<T>() + begin, b.into_dx(size_t(place)) == Into::accumulate,
                   n);
    const int64_t first = place == Program::parameter ? 0 : begin / sample_ * sums_of(place);
    double* to = sums.data() + wanted.sum_at[size_t(place)] - first;
    for_each_run(of_place(place), begin, begin + n, [&](int64_t at, int64_t run, int64_t stride) {
      if (stride == 0)
        to[at] += sum(from, run);
      else
        for (int64_t i = 0; i < run; ++i) to[at + i] += double(from[i]);
      from += run;
    });
  }

  // Number i of the run belongs to lane i mod 8; the lanes are added up in order.
  static double sum(const float* from, int64_t n) {
    constexpr int64_t lanes = 8;
    double lane[lanes] = {}, all = 0;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int64_t l = 0; l < lanes; ++l) lane[l] += double(from[i + l]);
    for (int64_t l = 0; i < n; ++i, ++l) lane[l] += double(from[i]);
    for (int64_t l = 0; l < lanes; ++l) all += lane[l];
    return all;
  }

  void put_sums(const Backward& b, const Wanted& wanted, int64_t n, std::span<const double> sums) const {
    for (int place = 0; place < program_.inputs; ++place) {
      if (!wanted.place[size_t(place)] || whole(place)) continue;
      T* to = b.dx[size_t(place)].data<T>() + n * sums_of(place);
      const bool adds = b.into_dx(size_t(place)) == Into::accumulate;
      for (int64_t i = 0; i < sums_of(place); ++i) {
        const T fresh = T(float(sums[size_t(wanted.sum_at[size_t(place)] + i)]));
        to[i] = adds ? T(to[i] + fresh) : fresh;
      }
    }
  }

  void add_up(const Backward& b, const Wanted& wanted, const double* all) const {
    float* dw = b.dw[0].data<float>();
    for (int64_t i = 0; i < sums_of(Program::parameter); ++i) {
      double sum = 0;
      for (int64_t n = 0; n < samples_; ++n)
        sum += all[n * wanted.sample_sums + wanted.sum_at[Program::parameter] + i];
      dw[i] = b.into == Into::accumulate ? dw[i] + float(sum) : float(sum);
    }
  }

  const Program program_;
  const PlacesRead read_;
  const ElementwiseSteps& loops_;
  std::vector<Repeated> operands_;  // of the inputs, then of the parameter
  int64_t samples_, sample_;        // sample_: elements of y of one sample
  std::optional<Activation> padded_;
};

// The loss of a formula (layers/formula_loss.h). Its constants are copied to where kernels of all engines
// have them.
class FormulaLossKernel : public ElementwiseKernel<float> {
 public:
  FormulaLossKernel(const FormulaLoss& op, std::span<const TensorSpec> x)
      : ElementwiseKernel(op.formula, x), constants_(op.options.constants) {}

  void prepare(Context&, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    if (!constants_.empty()) std::ranges::copy(constants_, prepared[0].data<float>());
  }

  void forward(Context& context, const Forward& f) const override {
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      Tile t;
      put_numbers(t);
      double loss = 0;
      for (int64_t i = n * sample_; i < (n + 1) * sample_; i += tile) {
        const int64_t count = std::min(tile, (n + 1) * sample_ - i);
        compute(t, every_place, f.x, f.prepared, i, count);
        loss += sum(t.value[program_.result()], count);
      }
      f.y.data<float>()[2 * n] = float(loss);
      f.y.data<float>()[2 * n + 1] = 0;
    });
  }

  void backward(Context& context, const Backward& b) const override {
    Backward call = b;
    call.params = b.prepared;
    float scale = b.loss_scale;
    go_back(context, call, {&scale, {.extents = {samples_ * sample_}}});
  }

 private:
  const std::vector<float> constants_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
  const auto& elementwise = static_cast<const Elementwise&>(op);
  const std::vector<Repeated> operands = repeated(elementwise, x);
  const bool flat = operands.size() == x.size() && std::ranges::all_of(operands, &Repeated::whole);
  const Layout layout = flat ? accept(offered[0]) : Layout::plain;
  Lowering l{.x = std::vector<Layout>(x.size(), layout),
             .y = layout,
             .precision = precision,
             .keeps_x = !is_linear(elementwise.program),
             .adds_dx = true};
  int64_t sums = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_parameter = i == x.size();
    if (is_parameter) l.params = {Layout::plain};
    if (is_parameter || !operands[i].whole) sums += operands[i].elements * (is_parameter ? x[0][0] : 1);
  }
  l.workspace_bytes = sums * int64_t(sizeof(double));
  return l;
}

}  // namespace

KernelEntry formula_loss_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {  // float32 in all
            const auto& loss = static_cast<const FormulaLoss&>(op);
            const std::vector<Layout> plain(x.size(), Layout::plain);
            Lowering l = lower(loss.formula, x, plain, Precision::float32);
            l.params = {};
            if (const auto constants = std::ssize(loss.options.constants); constants > 0)
              l.prepared = {{.shape = {constants}}};
            l.adds_dx = false;
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<FormulaLossKernel>(static_cast<const FormulaLoss&>(op), x);
      }};
}

KernelEntry elementwise_entry() {
  return {.lower = lower,
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<ElementwiseKernel>(x[0].dtype, static_cast<const Elementwise&>(op), x);
              },
          .fuses = [](const Op&) { return true; }};
}

}  // namespace antichain::cpu
