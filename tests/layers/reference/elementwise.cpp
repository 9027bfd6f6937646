// Computes the operators that move or scale single elements: ReLU, add, concat, flatten, dropout.
#include <cstring>

#include "layers/dropout.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

void copy(const Tensor& from, const Tensor& to) { std::memcpy(to.raw(), from.raw(), size_t(to.bytes())); }

void relu_forward(const Op&, const Forward& f) {
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = std::max(f.x[0].data<double>()[i], 0.0);
}

void relu_backward(const Op&, const Backward& b) {
  double* dx = wanted(b.dx, 0, Into::overwrite);
  for (int64_t i = 0; dx && i < b.dy.elements(); ++i)
    dx[i] = b.x[0].data<double>()[i] > 0 ? b.dy.data<double>()[i] : 0.0;
}

void add_forward(const Op&, const Forward& f) {
  for (int64_t i = 0; i < f.y.elements(); ++i)
    f.y.data<double>()[i] = f.x[0].data<double>()[i] + f.x[1].data<double>()[i];
}

void add_backward(const Op&, const Backward& b) {
  for (const Tensor& dx : b.dx)
    if (dx) copy(b.dy, dx);
}

// Calls f(part, element of the part, element of the whole) for every element of the joined tensor.
template <class F>
void for_each_part(std::span<const Tensor> x, const Shape& y, F&& f) {
  int64_t first_channel = 0;
  for (size_t part = 0; part < x.size(); ++part) {
    const int64_t run = x[part].elements() / y[0], pixels = y[2] * y[3];
    for (int64_t i = 0; i < x[part].elements(); ++i)
      f(part, i, i / run * y[1] * pixels + first_channel * pixels + i % run);
    first_channel += x[part].shape()[1];
  }
}

void concat_forward(const Op&, const Forward& f) {
  for_each_part(f.x, f.y.shape(), [&](size_t part, int64_t i, int64_t j) {
    f.y.data<double>()[j] = f.x[part].data<double>()[i];
  });
}

void concat_backward(const Op&, const Backward& b) {
  for_each_part(b.x, b.dy.shape(), [&](size_t part, int64_t i, int64_t j) {
    if (part < b.dx.size() && b.dx[part]) b.dx[part].data<double>()[i] = b.dy.data<double>()[j];
  });
}

void flatten_forward(const Op&, const Forward& f) { copy(f.x[0], f.y); }
void flatten_backward(const Op&, const Backward& b) {
  if (wanted(b.dx, 0, Into::overwrite)) copy(b.dy, b.dx[0]);
}

void drop(const Dropout& op, const DropoutKey& key, const Tensor& from, const Tensor& to) {
  const int64_t samples = from.shape()[0], count = from.elements() / samples;
  for (int64_t n = 0; n < samples; ++n) {
    const DropoutMask mask(op, key, n);
    for (int64_t i = 0; i < count; ++i)
      to.data<double>()[n * count + i] =
          mask.kept(i / 4)[i % 4] ? from.data<double>()[n * count + i] / (1 - op.p) : 0.0;
  }
}

void dropout_forward(const Op& op, const Forward& f) {
  if (f.mode == Mode::evaluate) return copy(f.x[0], f.y);
  drop(static_cast<const Dropout&>(op), f.dropout, f.x[0], f.y);
}

void dropout_backward(const Op& op, const Backward& b) {
  if (wanted(b.dx, 0, Into::overwrite)) drop(static_cast<const Dropout&>(op), b.dropout, b.dy, b.dx[0]);
}

}  // namespace

KernelEntry relu() { return entry_of(relu_forward, relu_backward); }
KernelEntry add() { return entry_of(add_forward, add_backward); }
KernelEntry concat() { return entry_of(concat_forward, concat_backward); }
KernelEntry flatten() { return entry_of(flatten_forward, flatten_backward); }
KernelEntry dropout() { return entry_of(dropout_forward, dropout_backward); }

}  // namespace antichain::reference
