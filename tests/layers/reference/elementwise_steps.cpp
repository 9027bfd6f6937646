// Carries out formulas (layers/elementwise.h) with the standard library's functions, element by element.
#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/elementwise.h"
#include "layers/formula_loss.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace formulas {
namespace {

using Program = ElementwiseProgram;
using Function = ElementwiseFunction;

double exp_of(double x) { return std::exp(x); }
double expm1_of(double x) { return std::expm1(x); }
double log_of(double x) { return std::log(x); }
double log1p_of(double x) { return std::log1p(x); }
double sin_of(double x) { return std::sin(x); }
double cos_of(double x) { return std::cos(x); }
double tanh_of(double x) { return std::tanh(x); }
double sqrt_of(double x) { return std::sqrt(x); }
double power_of(double x, double exponent) { return std::pow(x, exponent); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::log1p(std::exp(x)); }
double mish_of(double x) { return x * std::tanh(softplus_of(x)); }
double mish_slope_of(double x) {
  const double t = std::tanh(softplus_of(x));
  return t + x * (1 - t * t) * sigmoid_of(x);
}

double value_of(Function function, double a, double b, double c) {
  switch (function) {
#define ROW(name, operands, flops, formula, da, db, dc) \
  case Function::name:                                  \
    return formula;
#include "layers/elementwise_table.inc"
#undef ROW
  }
  return NAN;
}

double gradient_of(Function function, int operand, double a, double b, double c, double y, double dy) {
  switch (function) {
#define ROW(name, operands, flops, formula, da, db, dc) \
  case Function::name:                                  \
    return operand == 0 ? double(da) : operand == 1 ? double(db) : double(dc);
#include "layers/elementwise_table.inc"
#undef ROW
  }
  return NAN;
}

// Holds an operand's numbers, and the place of the one that belongs to an element of y.
struct Operand {
  int place;
  const double* numbers;
  double* gradient;  // nullptr: not wanted
  Repeated repeated;

  int64_t at(int64_t i) const {
    int64_t found = 0;
    for (int a = repeated.axes - 1; a >= 0; --a) {
      found += i % repeated.extents[size_t(a)] * repeated.strides[size_t(a)];
      i /= repeated.extents[size_t(a)];
    }
    return found;
  }
};

std::vector<Operand> operands_of(const Elementwise& op, std::span<const Tensor> x,
                                 std::span<const Tensor> params) {
  std::vector<Shape> shapes;
  for (const Tensor& t : x) shapes.push_back(t.shape());
  const std::vector<Repeated> all = repeated(op, shapes);
  std::vector<Operand> operands;
  for (size_t i = 0; i < x.size(); ++i) operands.push_back({int(i), x[i].data<double>(), nullptr, all[i]});
  if (!params.empty())
    operands.push_back({Program::parameter, params[0].data<double>(), nullptr, all.back()});
  return operands;
}

void compute(const Program& program, std::span<const Operand> operands, int64_t i, double* value) {
  for (int k = 0; k < program.numbers; ++k) value[Program::first_number + k] = double(program.number[k]);
  for (const Operand& operand : operands) value[operand.place] = operand.numbers[operand.at(i)];
  for (int s = 0; s < program.steps; ++s) {
    const Program::Step& step = program.step[s];
    const uint8_t* of = step.operands;
    value[Program::first_step + s] = value_of(step.function, value[of[0]], value[of[1]], value[of[2]]);
  }
}

void forward(const Op& op, const Forward& f) {
  const auto& of = static_cast<const Elementwise&>(op);
  const std::vector<Operand> operands = operands_of(of, f.x, f.params);
  for (int64_t i = 0; i < f.y.elements(); ++i) {
    double value[Program::places];
    compute(of.program, operands, i, value);
    f.y.data<double>()[i] = value[of.program.result()];
  }
}

// `dy_of` gives the gradient of an element of y.
template <class F>
void go_back(const Elementwise& of, const Backward& b, std::span<const Tensor> params, int64_t elements,
             const F& dy_of) {
  std::vector<Operand> operands = operands_of(of, b.x, params);
  for (Operand& operand : operands)
    operand.gradient = operand.place == Program::parameter
                           ? wanted(b.dw, 0, b.into)
                           : wanted(b.dx, size_t(operand.place), Into::overwrite);
  for (int64_t i = 0; i < elements; ++i) {
    double value[Program::places], gradient[Program::places] = {};
    compute(of.program, operands, i, value);
    gradient[of.program.result()] = dy_of(i);
    for (int s = of.program.steps - 1; s >= 0; --s) {
      const Program::Step& step = of.program.step[s];
      const uint8_t* x = step.operands;
      const int me = Program::first_step + s;
      for (int k = 0; k < step.count; ++k)
        gradient[x[k]] +=
            gradient_of(step.function, k, value[x[0]], value[x[1]], value[x[2]], value[me], gradient[me]);
    }
    for (const Operand& operand : operands)
      if (operand.gradient) operand.gradient[operand.at(i)] += gradient[operand.place];
  }
}

void backward(const Op& op, const Backward& b) {
  const auto dy = [&](int64_t i) { return b.dy.data<double>()[i]; };
  go_back(static_cast<const Elementwise&>(op), b, b.params, b.dy.elements(), dy);
}

int64_t elements_of(const Elementwise& formula, std::span<const Tensor> x) {
  std::vector<Shape> shapes;
  for (const Tensor& t : x) shapes.push_back(t.shape());
  return formula.infer(shapes).y.shape.elements();
}

// The constants of a loss stand in the place of a parameter.
std::vector<Tensor> constants_of(const FormulaLoss& loss) {
  const std::vector<float>& constants = loss.options.constants;
  if (constants.empty()) return {};
  const Tensor all = Tensor::host({{std::ssize(constants)}, DType::f64});
  std::ranges::copy(constants, all.data<double>());
  return {all};
}

void loss_forward(const Op& op, const Forward& f) {
  const auto& loss = static_cast<const FormulaLoss&>(op);
  const std::vector<Tensor> constants = constants_of(loss);
  const std::vector<Operand> operands = operands_of(loss.formula, f.x, constants);
  const int64_t samples = f.y.shape()[0], sample = elements_of(loss.formula, f.x) / samples;
  std::fill_n(f.y.data<double>(), f.y.elements(), 0);
  for (int64_t i = 0; i < samples * sample; ++i) {
    double value[Program::places];
    compute(loss.formula.program, operands, i, value);
    f.y.data<double>()[2 * (i / sample)] += value[loss.formula.program.result()];
  }
}

void loss_backward(const Op& op, const Backward& b) {
  const auto& loss = static_cast<const FormulaLoss&>(op);
  go_back(loss.formula, b, constants_of(loss), elements_of(loss.formula, b.x),
          [&](int64_t) { return double(b.loss_scale); });
}

}  // namespace
}  // namespace formulas

KernelEntry formula_loss() { return entry_of(formulas::loss_forward, formulas::loss_backward); }
KernelEntry elementwise() { return entry_of(formulas::forward, formulas::backward); }

}  // namespace antichain::reference
