// Computes the pointwise operators of modern convolutional networks, as their formulas stand in the headers:
// activation functions, products, softmax, and stochastic depth.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "layers/activate.h"
#include "layers/stochastic_depth.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

double clamp6(double x) { return std::clamp(x, 0.0, 6.0); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

constexpr double root = std::numbers::inv_sqrtpi * std::numbers::sqrt2;  // √(2 / π)
double tanh_of(double x) { return std::tanh(root * (x + 0.044715 * x * x * x)); }

}  // namespace

double value(ActivationFunction f, double x) {
  switch (f) {
    case ActivationFunction::gelu:
      return x * normal_cdf(x);
    case ActivationFunction::gelu_tanh:
      return x * (1 + tanh_of(x)) / 2;
    case ActivationFunction::hardsigmoid:
      return clamp6(x + 3) / 6;
    case ActivationFunction::hardswish:
      return x * clamp6(x + 3) / 6;
    case ActivationFunction::relu6:
      return clamp6(x);
    case ActivationFunction::sigmoid:
      return logistic(x);
    case ActivationFunction::silu:
      return x * logistic(x);
  }
  return NAN;
}

double derivative(ActivationFunction f, double x) {
  const double s = logistic(x), t = tanh_of(x);
  switch (f) {
    case ActivationFunction::gelu:
      return normal_cdf(x) + x * std::exp(-x * x / 2) * root / 2;
    case ActivationFunction::gelu_tanh:
      return (1 + t) / 2 + x * (1 - t * t) / 2 * root * (1 + 3 * 0.044715 * x * x);
    case ActivationFunction::hardsigmoid:
      return x > -3 && x < 3 ? 1.0 / 6 : 0;
    case ActivationFunction::hardswish:
      return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case ActivationFunction::relu6:
      return x > 0 && x < 6 ? 1 : 0;
    case ActivationFunction::sigmoid:
      return s * (1 - s);
    case ActivationFunction::silu:
      return s * (1 + x * (1 - s));
  }
  return NAN;
}

namespace {

void activate_forward(const Op& op, const Forward& f) {
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = value(static_cast<const Activate&>(op).function, f.x[0].data<double>()[i]);
}

void activate_backward(const Op& op, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  for (int64_t i = 0; dx && i < b.dy.elements(); ++i)
    dx[i] = b.dy.data<double>()[i] *
            derivative(static_cast<const Activate&>(op).function, b.x[0].data<double>()[i]);
}

// Returns how many elements of a share each element of b.
int64_t repeats(std::span<const Tensor> x) { return x[0].elements() / x[1].elements(); }

void multiply_forward(const Op&, const Forward& f) {
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = f.x[0].data<double>()[i] * f.x[1].data<double>()[i / repeats(f.x)];
}

void multiply_backward(const Op&, const Backward& b) {
  double *da = wanted(b.dx, 0, Into::overwrite), *db = wanted(b.dx, 1, Into::overwrite);
  for (int64_t i = 0; i < b.dy.elements(); ++i) {
    const int64_t j = i / repeats(b.x);
    if (da) da[i] = b.dy.data<double>()[i] * b.x[1].data<double>()[j];
    if (db) db[j] += b.dy.data<double>()[i] * b.x[0].data<double>()[i];
  }
}

void layer_scale_forward(const Op&, const Forward& f) {
  const Shape& x = f.x[0].shape();
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = f.x[0].data<double>()[i] * f.params[0].data<double>()[i / (x[2] * x[3]) % x[1]];
}

void layer_scale_backward(const Op&, const Backward& b) {
  const Shape& x = b.x[0].shape();
  double *dx = wanted(b.dx, 0, Into::overwrite), *dw = wanted(b.dw, 0, b.into);
  for (int64_t i = 0; i < b.dy.elements(); ++i) {
    const int64_t c = i / (x[2] * x[3]) % x[1];
    if (dx) dx[i] = b.dy.data<double>()[i] * b.params[0].data<double>()[c];
    if (dw) dw[c] += b.dy.data<double>()[i] * b.x[0].data<double>()[i];
  }
}

// Calls f(first, stride) for every pixel of every image: where its channels are.
template <class F>
void for_each_pixel(const Shape& x, F&& f) {
  const int64_t pixels = x.elements() / x[0] / x[1];
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t p = 0; p < pixels; ++p) f(n * x[1] * pixels + p, pixels);
}

void softmax_forward(const Op&, const Forward& f) {
  const int64_t channels = f.y.shape()[1];
  for_each_pixel(f.y.shape(), [&](int64_t first, int64_t stride) {
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) sum += std::exp(f.x[0].data<double>()[first + c * stride]);
    for (int64_t c = 0; c < channels; ++c)
      f.y.data<double>()[first + c * stride] = std::exp(f.x[0].data<double>()[first + c * stride]) / sum;
  });
}

void softmax_backward(const Op&, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  if (!dx) return;
  const double *y = b.y.data<double>(), *dy = b.dy.data<double>();
  const int64_t channels = b.dy.shape()[1];
  for_each_pixel(b.dy.shape(), [&](int64_t first, int64_t stride) {
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) sum += dy[first + c * stride] * y[first + c * stride];
    for (int64_t c = 0; c < channels; ++c)
      dx[first + c * stride] = y[first + c * stride] * (dy[first + c * stride] - sum);
  });
}

void drop(const Op& op, const DropoutKey& key, const Tensor& from, const Tensor& to) {
  const auto& depth = dynamic_cast<const StochasticDepth&>(op);
  const KeptParts parts(depth, from.shape(), key);
  const int64_t of_part = from.elements() / parts_of(depth, from.shape());
  for (int64_t i = 0; i < from.elements(); ++i)
    to.data<double>()[i] = parts.kept(i / of_part) ? from.data<double>()[i] / (1 - depth.p) : 0;
}

void stochastic_depth_forward(const Op& op, const Forward& f) {
  if (f.mode == Mode::train) return drop(op, f.dropout, f.x[0], f.y);
  std::memcpy(f.y.raw(), f.x[0].raw(), size_t(f.y.bytes()));
}

void stochastic_depth_backward(const Op& op, const Backward& b) {
  if (wanted(b.dx, 0, Into::overwrite)) drop(op, b.dropout, b.dy, b.dx[0]);
}

}  // namespace

KernelEntry activate() { return entry_of(activate_forward, activate_backward); }
KernelEntry layer_scale() { return entry_of(layer_scale_forward, layer_scale_backward); }
KernelEntry multiply() { return entry_of(multiply_forward, multiply_backward); }
KernelEntry softmax() { return entry_of(softmax_forward, softmax_backward); }
KernelEntry stochastic_depth() { return entry_of(stochastic_depth_forward, stochastic_depth_backward); }

}  // namespace antichain::reference
