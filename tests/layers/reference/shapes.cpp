// Computes the operators that give samples other shapes, index by index.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "layers/class_token.h"
#include "layers/constant.h"
#include "layers/gather.h"
#include "layers/mean.h"
#include "layers/permute.h"
#include "layers/slice.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

using Coordinates = std::array<int64_t, Shape::max_rank>;

Coordinates coordinates_of(int64_t i, const Shape& shape) {
  Coordinates at{};
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[size_t(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return at;
}

int64_t index_of(const Coordinates& at, const Shape& shape) {
  int64_t i = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + at[size_t(axis)];
  return i;
}

// Calls f(i, j) for every element i of y: element j of x is the one that it is a copy of.
template <class F>
void for_each_copied(const Permute& op, const Shape& x, F&& f) {
  const Shape y = op.infer({&x, 1}).y.shape;
  for (int64_t i = 0; i < y.elements(); ++i) {
    const Coordinates in_y = coordinates_of(i, y);
    Coordinates in_x{};
    for (size_t axis = 0; axis < op.order.size(); ++axis) in_x[size_t(op.order[axis])] = in_y[axis];
    f(i, index_of(in_x, x));
  }
}

template <class F>
void for_each_copied(const Slice& op, const Shape& x, F&& f) {
  const Shape y = op.infer({&x, 1}).y.shape;
  const size_t axis = size_t(op.options.axis);
  const int64_t extent = x[op.options.axis], begin = op.options.begin;
  for (int64_t i = 0; i < y.elements(); ++i) {
    Coordinates at = coordinates_of(i, y);
    at[axis] = (begin < 0 ? begin + extent : begin) + at[axis] * op.options.step;
    f(i, index_of(at, x));
  }
}

template <class F>
void for_each_copied(const Gather& op, const Shape& x, F&& f) {
  const Shape y = op.infer({&x, 1}).y.shape;
  const size_t axis = size_t(op.options.axis);
  for (int64_t i = 0; i < y.elements(); ++i) {
    Coordinates at = coordinates_of(i, y);
    at[axis] = op.options.table[size_t(at[axis])];
    f(i, index_of(at, x));
  }
}

// Calls f(i, j) for every element j of x: it is a term of element i of y.
template <class F>
void for_each_copied(const Mean& op, const Shape& x, F&& f) {
  const Shape kept = Mean(op.axes, true).infer({&x, 1}).y.shape;
  for (int64_t j = 0; j < x.elements(); ++j) {
    Coordinates at = coordinates_of(j, x);
    for (const int axis : op.axes) at[size_t(axis)] = 0;
    f(index_of(at, kept), j);
  }
}

template <class AnyOp>
void copy_forward(const Op& op, const Forward& f) {
  for_each_copied(dynamic_cast<const AnyOp&>(op), f.x[0].shape(),
                  [&](int64_t i, int64_t j) { f.y.data<double>()[i] = f.x[0].data<double>()[j]; });
}

template <class AnyOp>
void copy_backward(const Op& op, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  if (!dx) return;
  for_each_copied(dynamic_cast<const AnyOp&>(op), b.x[0].shape(),
                  [&](int64_t i, int64_t j) { dx[j] += b.dy.data<double>()[i]; });
}

void mean_forward(const Op& op, const Forward& f) {
  std::memset(f.y.raw(), 0, size_t(f.y.bytes()));
  const double terms = double(f.x[0].elements()) / double(f.y.elements());
  for_each_copied(dynamic_cast<const Mean&>(op), f.x[0].shape(),
                  [&](int64_t i, int64_t j) { f.y.data<double>()[i] += f.x[0].data<double>()[j] / terms; });
}

void mean_backward(const Op& op, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  const double terms = double(b.x[0].elements()) / double(b.dy.elements());
  if (!dx) return;
  for_each_copied(dynamic_cast<const Mean&>(op), b.x[0].shape(),
                  [&](int64_t i, int64_t j) { dx[j] = b.dy.data<double>()[i] / terms; });
}

void constant_forward(const Op& op, const Forward& f) {
  const std::vector<float> sample = dynamic_cast<const Constant&>(op).sample();
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = double(sample[size_t(i) % sample.size()]);
}

void constant_backward(const Op&, const Backward& b) { wanted(b.dx, 0, Into::overwrite); }

void class_token_forward(const Op&, const Forward& f) {
  const int64_t samples = f.y.shape()[0], width = f.y.shape()[2], of_x = f.x[0].elements() / samples;
  double* to = f.y.data<double>();
  for (int64_t n = 0; n < samples; ++n) {
    to = std::copy_n(f.params[0].data<double>(), width, to);
    to = std::copy_n(f.x[0].data<double>() + n * of_x, of_x, to);
  }
}

void class_token_backward(const Op&, const Backward& b) {
  const int64_t samples = b.dy.shape()[0], width = b.dy.shape()[2], of_y = b.dy.elements() / samples;
  double *dx = wanted(b.dx, 0, Into::overwrite), *dw = wanted(b.dw, 0, b.into);
  for (int64_t i = 0; i < b.dy.elements(); ++i) {
    const double dy = b.dy.data<double>()[i];
    const int64_t at = i % of_y;
    if (at < width && dw) dw[at] += dy;
    if (at >= width && dx) dx[i / of_y * (of_y - width) + at - width] = dy;
  }
}

}  // namespace

KernelEntry constant() { return entry_of(constant_forward, constant_backward); }
KernelEntry class_token() { return entry_of(class_token_forward, class_token_backward); }
KernelEntry gather() { return entry_of(copy_forward<Gather>, copy_backward<Gather>); }
KernelEntry permute() { return entry_of(copy_forward<Permute>, copy_backward<Permute>); }
KernelEntry slice() { return entry_of(copy_forward<Slice>, copy_backward<Slice>); }
KernelEntry mean() { return entry_of(mean_forward, mean_backward); }

}  // namespace antichain::reference
