// Computes layer and group normalisation row by row, with moments formed anew in backward. A row of group
// normalisation is the numbers of a group.
#include "layers/layer_norm.h"

#include <cmath>

#include "layers/group_norm.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// A Row's numbers lie `stride` apart, and so many neighbours share a weight and a bias. `mean` and `inverse`
// are its statistics.
struct Row {
  int64_t first, stride, length;
  int64_t first_param = 0, shared = 1;
  double mean = 0, inverse = 0;
  bool centred = true;
  int64_t at(int64_t i) const { return first + i * stride; }
  int64_t param(int64_t i) const { return first_param + i / shared; }
  double normed(const double* x, int64_t i) const { return (x[at(i)] - mean) * inverse; }
};

std::vector<Row> rows_of(const LayerNorm& op, const Shape& x) {
  const int64_t length = op.row(x).elements(), pixels = op.options.channels ? x[2] * x[3] : 1;
  std::vector<Row> rows;
  for (int64_t n = 0; n < x.elements() / length; ++n)
    rows.push_back({.first = n / pixels * pixels * length + n % pixels,
                    .stride = pixels,
                    .length = length,
                    .centred = op.options.centred});
  return rows;
}

std::vector<Row> rows_of(const GroupNorm& op, const Shape& x) {
  const int64_t groups = op.options.groups, length = x.elements() / x[0] / groups;
  std::vector<Row> rows;
  for (int64_t n = 0; n < x[0] * groups; ++n)
    rows.push_back({n * length, 1, length, n % groups * (x[1] / groups), length * groups / x[1]});
  return rows;
}

template <class AnyOp, class F>
void for_each_row(const Op& any, const Tensor& x, F&& f) {
  const auto& op = static_cast<const AnyOp&>(any);
  for (Row& row : rows_of(op, x.shape())) {
    const double* values = x.data<double>();
    const double n = double(row.length);
    double variance = 0;
    for (int64_t i = 0; row.centred && i < row.length; ++i) row.mean += values[row.at(i)] / n;
    for (int64_t i = 0; i < row.length; ++i)
      variance += (values[row.at(i)] - row.mean) * (values[row.at(i)] - row.mean) / n;
    row.inverse = 1 / std::sqrt(variance + double(op.options.eps));
    f(row);
  }
}

double param(std::span<const Tensor> params, size_t i, int64_t at, double otherwise) {
  return i < params.size() ? params[i].data<double>()[at] : otherwise;
}

template <class AnyOp>
void norm_forward(const Op& op, const Forward& f) {
  for_each_row<AnyOp>(op, f.x[0], [&](const Row& row) {
    for (int64_t i = 0; i < row.length; ++i)
      f.y.data<double>()[row.at(i)] =
          row.normed(f.x[0].data<double>(), i) * param(f.params, 0, row.param(i), 1) +
          param(f.params, 1, row.param(i), 0);
  });
}

// Ba, Kiros & Hinton 2016: the gradient of batch normalisation (Ioffe & Szegedy 2015, section 3), over rows.
template <class AnyOp>
void norm_backward(const Op& op, const Backward& b) {
  double *dx = wanted(b.dx, 0, Into::overwrite), *dweight = wanted(b.dw, 0, b.into),
         *dbias = wanted(b.dw, 1, b.into);
  const double *x = b.x[0].data<double>(), *dy = b.dy.data<double>();
  for_each_row<AnyOp>(op, b.x[0], [&](const Row& row) {
    double sum = 0, product = 0;
    for (int64_t i = 0; i < row.length; ++i) {
      const double weighted = dy[row.at(i)] * param(b.params, 0, row.param(i), 1);
      sum += weighted / double(row.length);
      product += weighted * row.normed(x, i) / double(row.length);
      if (dweight) dweight[row.param(i)] += dy[row.at(i)] * row.normed(x, i);
      if (dbias) dbias[row.param(i)] += dy[row.at(i)];
    }
    for (int64_t i = 0; dx && i < row.length; ++i)
      dx[row.at(i)] = row.inverse * (dy[row.at(i)] * param(b.params, 0, row.param(i), 1) - row.centred * sum -
                                     row.normed(x, i) * product);
  });
}

}  // namespace

KernelEntry group_norm() { return entry_of(norm_forward<GroupNorm>, norm_backward<GroupNorm>); }
KernelEntry layer_norm() { return entry_of(norm_forward<LayerNorm>, norm_backward<LayerNorm>); }

}  // namespace antichain::reference
