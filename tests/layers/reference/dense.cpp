// The operators with weights that multiply: convolution and linear, as plain sums.
#include <Eigen/Core>

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<Matrix>;

// Calls f(output element, input element, weight element) for every product that convolution sums. The elements are
// offsets into y, x and weight.
template <class F>
void for_each_product(const Conv2dOptions& o, const Shape& x, const Shape& y, F&& f) {
  const int64_t inputs = x[1] / o.groups, outputs = y[1] / o.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t k = 0; k < y[1]; ++k)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t r = 0; r < o.kernel.h; ++r)
          for (int64_t s = 0; s < o.kernel.w; ++s)
            for (int64_t p = 0; p < y[2]; ++p)
              for (int64_t q = 0; q < y[3]; ++q) {
                const int64_t row = p * o.stride.h - o.pad.h + r, column = q * o.stride.w - o.pad.w + s;
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                const int64_t channel = k / outputs * inputs + c;
                f(((n * y[1] + k) * y[2] + p) * y[3] + q, ((n * x[1] + channel) * x[2] + row) * x[3] + column,
                  ((k * inputs + c) * o.kernel.h + r) * o.kernel.w + s);
              }
}

void conv2d_forward(const Op& op, const Forward& f) {
  const Conv2dOptions& o = static_cast<const Conv2d&>(op).options;
  const double *x = f.x[0].data<double>(), *weight = f.params[0].data<double>();
  const Shape& shape = f.y.shape();
  double* y = f.y.data<double>();
  for (int64_t i = 0; i < f.y.elements(); ++i)
    y[i] = o.bias ? f.params[1].data<double>()[i / (shape[2] * shape[3]) % shape[1]] : 0.0;
  for_each_product(o, f.x[0].shape(), shape,
                   [&](int64_t out, int64_t in, int64_t w) { y[out] += x[in] * weight[w]; });
}

void conv2d_backward(const Op& op, const Backward& b) {
  const Conv2dOptions& o = static_cast<const Conv2d&>(op).options;
  const double *x = b.x[0].data<double>(), *weight = b.params[0].data<double>(), *dy = b.dy.data<double>();
  const Shape& shape = b.dy.shape();
  double* dx = wanted(b.dx, 0, Into::overwrite);
  double* dw = wanted(b.dw, 0, b.into);
  for_each_product(o, b.x[0].shape(), shape, [&](int64_t out, int64_t in, int64_t w) {
    if (dx) dx[in] += dy[out] * weight[w];
    if (dw) dw[w] += dy[out] * x[in];
  });
  if (double* db = wanted(b.dw, 1, b.into))
    for (int64_t i = 0; i < b.dy.elements(); ++i) db[i / (shape[2] * shape[3]) % shape[1]] += dy[i];
}

MatrixView matrix(const Tensor& t) { return {t.data<double>(), t.shape()[0], t.shape()[1]}; }

void linear_forward(const Op& op, const Forward& f) {
  matrix(f.y) = matrix(f.x[0]) * matrix(f.params[0]).transpose();
  if (static_cast<const Linear&>(op).options.bias)
    matrix(f.y).rowwise() += Eigen::Map<Eigen::RowVectorXd>(f.params[1].data<double>(), f.y.shape()[1]);
}

void linear_backward(const Op&, const Backward& b) {
  if (wanted(b.dx, 0, Into::overwrite)) matrix(b.dx[0]) = matrix(b.dy) * matrix(b.params[0]);
  if (wanted(b.dw, 0, b.into)) matrix(b.dw[0]) += matrix(b.dy).transpose() * matrix(b.x[0]);
  if (double* db = wanted(b.dw, 1, b.into))
    Eigen::Map<Eigen::RowVectorXd>(db, b.dy.shape()[1]) += matrix(b.dy).colwise().sum();
}

}  // namespace

KernelEntry conv2d() { return entry_of(conv2d_forward, conv2d_backward); }
KernelEntry linear() { return entry_of(linear_forward, linear_backward); }

}  // namespace antichain::reference
