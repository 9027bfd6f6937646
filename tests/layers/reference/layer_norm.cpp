// Computes layer normalisation row by row, with moments formed anew in backward.
#include "layers/layer_norm.h"

#include <cmath>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// A Row's numbers lie `stride` apart; `mean` and `inverse` are its statistics.
struct Row {
  int64_t first, stride, length;
  double mean = 0, inverse = 0;
  int64_t at(int64_t i) const { return first + i * stride; }
  double normed(const double* x, int64_t i) const { return (x[at(i)] - mean) * inverse; }
};

template <class F>
void for_each_row(const LayerNorm& op, const Tensor& x, F&& f) {
  const int64_t length = op.row(x.shape()).elements(), rows = x.elements() / length;
  const int64_t pixels = op.options.channels ? x.shape()[2] * x.shape()[3] : 1;
  for (int64_t n = 0; n < rows; ++n) {
    Row row{n / pixels * pixels * length + n % pixels, pixels, length};
    const double* values = x.data<double>();
    double variance = 0;
    for (int64_t i = 0; i < length; ++i) row.mean += values[row.at(i)] / double(length);
    for (int64_t i = 0; i < length; ++i)
      variance += (values[row.at(i)] - row.mean) * (values[row.at(i)] - row.mean) / double(length);
    row.inverse = 1 / std::sqrt(variance + double(op.options.eps));
    f(row);
  }
}

double param(std::span<const Tensor> params, size_t i, int64_t at, double otherwise) {
  return i < params.size() ? params[i].data<double>()[at] : otherwise;
}

void layer_norm_forward(const Op& any, const Forward& f) {
  for_each_row(static_cast<const LayerNorm&>(any), f.x[0], [&](const Row& row) {
    for (int64_t i = 0; i < row.length; ++i)
      f.y.data<double>()[row.at(i)] =
          row.normed(f.x[0].data<double>(), i) * param(f.params, 0, i, 1) + param(f.params, 1, i, 0);
  });
}

// Ba, Kiros & Hinton 2016: the gradient of batch normalisation (Ioffe & Szegedy 2015, section 3), over rows.
void layer_norm_backward(const Op& any, const Backward& b) {
  double *dx = wanted(b.dx, 0, Into::overwrite), *dweight = wanted(b.dw, 0, b.into),
         *dbias = wanted(b.dw, 1, b.into);
  const double *x = b.x[0].data<double>(), *dy = b.dy.data<double>();
  for_each_row(static_cast<const LayerNorm&>(any), b.x[0], [&](const Row& row) {
    double sum = 0, product = 0;
    for (int64_t i = 0; i < row.length; ++i) {
      const double weighted = dy[row.at(i)] * param(b.params, 0, i, 1);
      sum += weighted / double(row.length);
      product += weighted * row.normed(x, i) / double(row.length);
      if (dweight) dweight[i] += dy[row.at(i)] * row.normed(x, i);
      if (dbias) dbias[i] += dy[row.at(i)];
    }
    for (int64_t i = 0; dx && i < row.length; ++i)
      dx[row.at(i)] =
          row.inverse * (dy[row.at(i)] * param(b.params, 0, i, 1) - sum - row.normed(x, i) * product);
  });
}

}  // namespace

KernelEntry layer_norm() { return entry_of(layer_norm_forward, layer_norm_backward); }

}  // namespace antichain::reference
