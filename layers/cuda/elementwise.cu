// Elementwise takes one launch for y, one for the gradients of all operands that are not repeated, and a fold
// for each operand that is. A thread carries all steps of one element in registers and local memory.
#include "layers/elementwise.h"

#include <algorithm>

#include "framework/cuda/launch.h"
#include "layers/cuda/fold_rows.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/formula_loss.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

using Program = ElementwiseProgram;

#define INLINE ANTICHAIN_DEVICE static inline
#include "layers/elementwise_math.inc"
#undef INLINE

ANTICHAIN_DEVICE inline float value_of(ElementwiseFunction function, float a, float b, float c) {
  switch (function) {
#define ROW(name, operands, flops, formula, da, db, dc) \
  case ElementwiseFunction::name:                       \
    return float(formula);
#include "layers/elementwise_table.inc"
#undef ROW
  }
  return 0;
}

ANTICHAIN_DEVICE inline float gradient_of(ElementwiseFunction function, int operand, float a, float b,
                                          float c, float y, float dy) {
  switch (function) {
#define ROW(name, operands, flops, formula, da, db, dc) \
  case ElementwiseFunction::name:                       \
    return operand == 0 ? float(da) : operand == 1 ? float(db) : float(dc);
#include "layers/elementwise_table.inc"
#undef ROW
  }
  return 0;
}

// Axes number some elements, row-major, and say where each lies.
struct Axes {
  int count = 0;
  Index extents[Shape::max_rank] = {}, strides[Shape::max_rank] = {};

  void add(int64_t extent, int64_t stride) {
    extents[count] = index_of(extent);
    strides[count++] = index_of(stride);
  }
  ANTICHAIN_DEVICE Index at(Index i) const {
    Index place = 0;
    for (int a = count - 1; a > 0; --a) {
      place += i % extents[a] * strides[a];
      i /= extents[a];
    }
    return count == 0 ? i : place + i * strides[0];
  }
};

// Node has all that a thread needs: the formula, and where the operands lie.
template <class T>
struct Node {
  Program program;
  const T* x[Program::most_inputs] = {};
  const float* parameter = nullptr;
  const T* dy = nullptr;  // nullptr: it is one number for all elements
  float all_dy = 0;
  Axes axes[Program::most_inputs + 1] = {};  // none: of the shape of y
  bool reads = true;                         // false: no gradient depends on a value

  ANTICHAIN_DEVICE void compute(Index i, float* value) const {
    for (int k = 0; k < program.numbers; ++k) value[Program::first_number + k] = program.number[k];
    if (!reads) return;
    for (int k = 0; k < program.inputs; ++k) value[k] = float(x[k][axes[k].at(i)]);
    if (program.has_parameter) value[Program::parameter] = parameter[axes[Program::parameter].at(i)];
    for (int s = 0; s < program.steps; ++s) {
      const Program::Step& step = program.step[s];
      value[Program::first_step + s] =
          value_of(step.function, value[step.operands[0]], value[step.operands[1]], value[step.operands[2]]);
    }
  }

  ANTICHAIN_DEVICE void differentiate(Index i, float* gradient) const {
    float value[Program::places] = {};
    compute(i, value);
    for (int place = 0; place < Program::places; ++place) gradient[place] = 0;
    gradient[Program::first_step + program.steps - 1] = dy ? float(dy[i]) : all_dy;
    for (int s = program.steps - 1; s >= 0; --s) {
      const Program::Step& step = program.step[s];
      const int me = Program::first_step + s;
      for (int k = 0; k < step.count; ++k)
        gradient[step.operands[k]] +=
            gradient_of(step.function, k, value[step.operands[0]], value[step.operands[1]],
                        value[step.operands[2]], value[me], gradient[me]);
    }
  }
};

template <class T>
void compute_all(Stream stream, int64_t count, const Node<T>& node, T* y) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    float value[Program::places];
    node.compute(i, value);
    y[i] = T(value[Program::first_step + node.program.steps - 1]);
  });
}

template <class T>
struct Gradients {
  T* dx[Program::most_inputs] = {};
  bool adds[Program::most_inputs] = {};
};

template <class T>
void write_gradients(Stream stream, int64_t count, const Node<T>& node, const Gradients<T>& to) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    float gradient[Program::places];
    node.differentiate(i, gradient);
    for (int k = 0; k < node.program.inputs; ++k) {
      if (!to.dx[k]) continue;
      // A term of a sum is rounded for storage before it is added, as where another kernel adds it.
      const T fresh = T(gradient[k]);
      to.dx[k][i] = to.adds[k] ? T(float(to.dx[k][i]) + float(fresh)) : fresh;
    }
  });
}

// Sums the gradients of one operand, whose element j has the terms terms.at(…) from element elements.at(j) of
// y.
template <class T, class Number>
void fold_gradients(Stream stream, const Node<T>& node, int place, const Axes& terms, int64_t term_count,
                    const Axes& elements, int64_t count, Number* to, bool adds) {
  const auto term = [=] ANTICHAIN_DEVICE(Index t, Index j) {
    float gradient[Program::places];
    node.differentiate(terms.at(t) + elements.at(j), gradient);
    return Sum{double(gradient[place])};
  };
  fold<Sum>(stream, term_count, count, term, [=] ANTICHAIN_DEVICE(Index j, const Sum& all) {
    const Number fresh = Number(float(all.value));
    to[j] = adds ? Number(float(to[j]) + float(fresh)) : fresh;
  });
}

// Writes a loss and no hit for each sample.
void sum_samples(Stream stream, const Node<float>& node, int64_t samples, int64_t sample, Sum* partials,
                 float* y) {
  const Index length = index_of(sample);
  const auto term = [=] ANTICHAIN_DEVICE(Index n, Index i) {
    float value[Program::places];
    node.compute(n * length + i, value);
    return Sum{double(value[Program::first_step + node.program.steps - 1])};
  };
  fold_rows<Sum>(stream, partials, samples, sample, term, [=] ANTICHAIN_DEVICE(Index n, const Sum& all) {
    y[2 * n] = float(all.value);
    y[2 * n + 1] = 0;
  });
}

template <class T>
class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(const Elementwise& op, std::span<const TensorSpec> x) {
    std::vector<Shape> shapes;
    for (const TensorSpec& spec : x) shapes.push_back(spec.shape);
    operands_ = repeated(op, shapes);
    elements_ = op.infer(shapes).y.shape.elements();
    node_.program = op.program;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Repeated& r = operands_[i];
      Axes& axes = node_.axes[place(i)];
      for (int a = 0; !r.whole && a < r.axes; ++a) axes.add(r.extents[size_t(a)], r.strides[size_t(a)]);
    }
    linear_ = is_linear(op.program);
  }

  void forward(Context& context, const Forward& f) const override {
    compute_all(stream_of(context), elements_, node_of(f.x, f.params), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    Node<T> node = node_of(linear_ ? std::span<const Tensor>() : b.x, b.params);
    node.dy = b.dy.data<T>();
    go_back(context, b, node);
  }

 protected:
  void go_back(Context& context, const Backward& b, Node<T> node) const {
    node.reads = !linear_;
    Gradients<T> whole;
    for (size_t i = 0; i < b.dx.size(); ++i) {
      if (!b.dx[i]) continue;
      const bool adds = b.into_dx(i) == Into::accumulate;
      if (operands_[i].whole)
        whole.dx[i] = b.dx[i].data<T>(), whole.adds[i] = adds;
      else
        fold_operand(context, node, i, b.dx[i].data<T>(), adds);
    }
    if (!b.dw.empty() && b.dw[0])
      fold_operand(context, node, operands_.size() - 1, b.dw[0].data<float>(), b.into == Into::accumulate);
    if (std::any_of(whole.dx, whole.dx + Program::most_inputs, [](T* dx) { return dx != nullptr; }))
      write_gradients(stream_of(context), elements_, node, whole);
  }

  size_t place(size_t operand) const {
    return operand < size_t(node_.program.inputs) ? operand : size_t(Program::parameter);
  }

  Node<T> node_of(std::span<const Tensor> x, std::span<const Tensor> params) const {
    Node<T> node = node_;
    for (size_t i = 0; i < x.size(); ++i) node.x[i] = x[i].data<T>();
    if (!params.empty()) node.parameter = params[0].data<float>();
    return node;
  }

  template <class Number>
  void fold_operand(Context& context, const Node<T>& node, size_t operand, Number* to, bool adds) const {
    const Repeated& r = operands_[operand];
    Axes terms, elements;
    int64_t stride = elements_, term_count = 1;
    for (int a = 0; a < r.axes; ++a) {
      const int64_t extent = r.extents[size_t(a)];
      stride /= extent;
      (r.strides[size_t(a)] == 0 ? terms : elements).add(extent, stride);
      if (r.strides[size_t(a)] == 0) term_count *= extent;
    }
    fold_gradients(stream_of(context), node, int(place(operand)), terms, term_count, elements, r.elements, to,
                   adds);
  }

  Node<T> node_;  // without tensors
  std::vector<Repeated> operands_;
  int64_t elements_;
  bool linear_;
};

// The loss of a formula (layers/formula_loss.h).
class FormulaLossKernel : public ElementwiseKernel<float> {
 public:
  FormulaLossKernel(const FormulaLoss& op, std::span<const TensorSpec> x)
      : ElementwiseKernel(op.formula, x), constants_(op.options.constants), samples_(x[0].shape[0]) {}

  static int64_t partials_bytes(int64_t samples, int64_t elements) {
    return Scratch::rounded(row_parts(samples, elements / samples) * int64_t(sizeof(Sum)));
  }

  void prepare(Context& context, std::span<const Tensor>, std::span<const Tensor> prepared) const override {
    if (constants_.empty()) return;
    put_numbers(stream_of(context), constants_.data(), std::ssize(constants_), prepared[0].data<float>());
  }

  void forward(Context& context, const Forward& f) const override {
    const int64_t sample = elements_ / samples_;
    Scratch scratch(context, partials_bytes(samples_, elements_));
    Sum* partials = scratch.take<Sum>(row_parts(samples_, sample));
    sum_samples(stream_of(context), node_of(f.x, f.prepared), samples_, sample, partials, f.y.data<float>());
  }

  void backward(Context& context, const Backward& b) const override {
    Node<float> node = node_of(linear_ ? std::span<const Tensor>() : b.x, b.prepared);
    node.all_dy = b.loss_scale;
    go_back(context, b, node);
  }

 private:
  const std::vector<float> constants_;
  const int64_t samples_;
};

}  // namespace

KernelEntry formula_loss_entry() {
  return {
      .lower =
          [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision) {  // float32
            const auto& loss = static_cast<const FormulaLoss&>(op);
            Lowering l{.x = std::vector<Layout>(x.size(), Layout::plain),
                       .keeps_x = !is_linear(loss.formula.program),
                       .workspace_bytes = FormulaLossKernel::partials_bytes(
                           x[0][0], loss.formula.infer(x).y.shape.elements())};
            if (const auto constants = std::ssize(loss.options.constants); constants > 0)
              l.prepared = {{.shape = {constants}}};
            return l;
          },
      .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
        return std::make_unique<FormulaLossKernel>(static_cast<const FormulaLoss&>(op), x);
      }};
}

KernelEntry elementwise_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const auto& elementwise = static_cast<const Elementwise&>(op);
                const std::vector<Repeated> operands = repeated(elementwise, x);
                const bool flat =
                    operands.size() == x.size() && std::ranges::all_of(operands, &Repeated::whole);
                const Layout layout = flat ? layout_of(x[0]) : Layout::plain;
                return Lowering{.x = std::vector<Layout>(x.size(), layout),
                                .y = layout,
                                .params = std::vector<Layout>(operands.size() - x.size(), Layout::plain),
                                .precision = precision,
                                .keeps_x = !is_linear(elementwise.program),
                                .adds_dx = true};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<ElementwiseKernel>(x[0].dtype, static_cast<const Elementwise&>(op), x);
              },
          .fuses = [](const Op&) { return true; }};
}

}  // namespace antichain::cuda
