// Computes the operators with weights that multiply, convolutions and linear, as products of matrices, with
// the operators that may be fused behind them.
#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "layers/conv2d.h"
#include "layers/conv_transpose2d.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/matmul.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<Matrix>;

// Computes a convolution as products of matrices, one group of one image at a time. Row (c, r, s) of `taps`
// holds what tap (r, s) of a filter sees of channel c at every output pixel (p, q), zero outside the image. A
// filter is a row of `weight`:
//
//   y = weight · taps      d weight = dy · tapsᵀ      d taps = weightᵀ · dy
class Taps {
 public:
  Taps(const Conv2dOptions& o, const Shape& x, const Shape& y)
      : o_(o), x_(x), y_(y), taps_(x[1] / o.groups * o.kernel.h * o.kernel.w, y[2] * y[3]) {}

  void gather(const double* x) {
    taps_.setZero();
    for_each([&](double& tap, int64_t pixel) { tap = x[pixel]; });
  }
  void scatter(double* x) {
    for_each([&](double& tap, int64_t pixel) { x[pixel] += tap; });
  }

  Matrix& matrix() { return taps_; }
  // These return where group `group` of image `image` begins in x and in y, and where its filters begin in
  // `weight`.
  int64_t x_start(int64_t image, int64_t group) const {
    return (image * x_[1] + group * x_[1] / o_.groups) * x_[2] * x_[3];
  }
  MatrixView y_part(double* y, int64_t image, int64_t group) const {
    return {y + (image * y_[1] + group * filters()) * taps_.cols(), filters(), taps_.cols()};
  }
  MatrixView w_part(double* w, int64_t group) const {
    return {w + group * filters() * taps_.rows(), filters(), taps_.rows()};
  }

 private:
  int64_t filters() const { return y_[1] / o_.groups; }

  // Calls f(tap, pixel within the group's channels of x).
  template <class F>
  void for_each(F&& f) {
    const int64_t kernel = o_.kernel.h * o_.kernel.w;
    for (int64_t tap = 0; tap < taps_.rows(); ++tap)
      for (int64_t p = 0; p < y_[2]; ++p)
        for (int64_t q = 0; q < y_[3]; ++q) {
          const int64_t row = p * o_.stride.h - o_.pad.before.h + tap % kernel / o_.kernel.w * o_.dilation.h;
          const int64_t column =
              q * o_.stride.w - o_.pad.before.w + tap % kernel % o_.kernel.w * o_.dilation.w;
          if (row >= 0 && row < x_[2] && column >= 0 && column < x_[3])
            f(taps_(tap, p * y_[3] + q), (tap / kernel * x_[2] + row) * x_[3] + column);
        }
  }

  const Conv2dOptions& o_;
  const Shape x_, y_;
  Matrix taps_;
};

void relu(const Tensor& y) {
  for (int64_t i = 0; i < y.elements(); ++i) y.data<double>()[i] = std::max(y.data<double>()[i], 0.0);
}

// Returns dy where y > 0 behind a ReLU.
std::vector<double> masked(const Backward& b, bool relu) {
  std::vector<double> dy(b.dy.data<double>(), b.dy.data<double>() + b.dy.elements());
  for (size_t i = 0; relu && i < dy.size(); ++i)
    if (b.y.data<double>()[i] <= 0) dy[i] = 0;
  return dy;
}

void conv2d_forward(const Op& op, const Forward& f) {
  const Conv2dOptions& o = static_cast<const Conv2d&>(op).options;
  double *y = f.y.data<double>(), *weight = f.params[0].data<double>();
  Taps taps(o, f.x[0].shape(), f.y.shape());
  for (int64_t n = 0; n < f.y.shape()[0]; ++n)
    for (int64_t group = 0; group < o.groups; ++group) {
      taps.gather(f.x[0].data<double>() + taps.x_start(n, group));
      taps.y_part(y, n, group).noalias() = taps.w_part(weight, group) * taps.matrix();
    }
  const int64_t pixels = f.y.shape()[2] * f.y.shape()[3];
  for (int64_t i = 0; o.bias && i < f.y.elements(); ++i)
    y[i] += f.params[1].data<double>()[i / pixels % o.out];
  if (o.relu) relu(f.y);
}

void conv2d_backward(const Op& op, const Backward& b) {
  const Conv2dOptions& o = static_cast<const Conv2d&>(op).options;
  std::vector<double> through = masked(b, o.relu);
  double *dy = through.data(), *weight = b.params[0].data<double>();
  double *dx = wanted(b.dx, 0, Into::overwrite), *dw = wanted(b.dw, 0, b.into);
  Taps taps(o, b.x[0].shape(), b.dy.shape());
  for (int64_t n = 0; n < b.dy.shape()[0]; ++n)
    for (int64_t group = 0; group < o.groups; ++group) {
      const int64_t start = taps.x_start(n, group);
      const MatrixView dy_part = taps.y_part(dy, n, group);
      if (dw) {
        taps.gather(b.x[0].data<double>() + start);
        taps.w_part(dw, group).noalias() += dy_part * taps.matrix().transpose();
      }
      if (dx) {
        taps.matrix().noalias() = taps.w_part(weight, group).transpose() * dy_part;
        taps.scatter(dx + start);
      }
    }
  const int64_t pixels = b.dy.shape()[2] * b.dy.shape()[3];
  if (double* db = wanted(b.dw, 1, b.into))
    for (int64_t i = 0; i < b.dy.elements(); ++i) db[i / pixels % o.out] += dy[i];
}

// A transposed convolution is written out by the taps of the convolution from y to x.
void conv_transpose2d_forward(const Op& op, const Forward& f) {
  const auto& transposed = static_cast<const ConvTranspose2d&>(op);
  const Conv2d conv = transposed.convolution(f.x[0].shape());
  double *x = f.x[0].data<double>(), *y = f.y.data<double>();
  Taps taps(conv.options, f.y.shape(), f.x[0].shape());
  std::fill_n(y, f.y.elements(), 0.0);
  for (int64_t n = 0; n < f.y.shape()[0]; ++n)
    for (int64_t group = 0; group < conv.options.groups; ++group) {
      taps.matrix().noalias() =
          taps.w_part(f.params[0].data<double>(), group).transpose() * taps.y_part(x, n, group);
      taps.scatter(y + taps.x_start(n, group));
    }
  const int64_t pixels = f.y.shape()[2] * f.y.shape()[3];
  for (int64_t i = 0; transposed.options.bias && i < f.y.elements(); ++i)
    y[i] += f.params[1].data<double>()[i / pixels % f.y.shape()[1]];
}

void conv_transpose2d_backward(const Op& op, const Backward& b) {
  const Conv2d conv = static_cast<const ConvTranspose2d&>(op).convolution(b.x[0].shape());
  double *x = b.x[0].data<double>(), *dy = b.dy.data<double>(), *weight = b.params[0].data<double>();
  double *dx = wanted(b.dx, 0, Into::overwrite), *dw = wanted(b.dw, 0, b.into);
  Taps taps(conv.options, b.dy.shape(), b.x[0].shape());
  for (int64_t n = 0; n < b.dy.shape()[0]; ++n)
    for (int64_t group = 0; group < conv.options.groups; ++group) {
      taps.gather(dy + taps.x_start(n, group));
      if (dx) taps.y_part(dx, n, group).noalias() = taps.w_part(weight, group) * taps.matrix();
      if (dw) taps.w_part(dw, group).noalias() += taps.y_part(x, n, group) * taps.matrix().transpose();
    }
  const int64_t pixels = b.dy.shape()[2] * b.dy.shape()[3];
  if (double* db = wanted(b.dw, 1, b.into))
    for (int64_t i = 0; i < b.dy.elements(); ++i) db[i / pixels % b.dy.shape()[1]] += dy[i];
}

// Returns a tensor as rows of its last axis.
MatrixView matrix(const Tensor& t) {
  const int64_t columns = t.shape()[t.shape().rank() - 1];
  return {t.data<double>(), t.shape().elements() / columns, columns};
}

// Returns the weight as out x in.
Matrix weight_of(const LinearOptions& o, const Tensor& t) {
  return o.in_first ? Matrix(matrix(t).transpose()) : Matrix(matrix(t));
}

void linear_forward(const Op& op, const Forward& f) {
  const LinearOptions& o = static_cast<const Linear&>(op).options;
  matrix(f.y) = matrix(f.x[0]) * weight_of(o, f.params[0]).transpose();
  if (o.bias) matrix(f.y).rowwise() += Eigen::Map<Eigen::RowVectorXd>(f.params[1].data<double>(), o.out);
  if (o.relu) relu(f.y);
}

void linear_backward(const Op& op, const Backward& b) {
  const LinearOptions& o = static_cast<const Linear&>(op).options;
  std::vector<double> through = masked(b, o.relu);
  const MatrixView dy(through.data(), matrix(b.dy).rows(), o.out);
  if (wanted(b.dx, 0, Into::overwrite)) matrix(b.dx[0]) = dy * weight_of(o, b.params[0]);
  if (wanted(b.dw, 0, b.into)) {
    const Matrix dw = dy.transpose() * matrix(b.x[0]);
    matrix(b.dw[0]) += o.in_first ? Matrix(dw.transpose()) : dw;
  }
  if (double* db = wanted(b.dw, 1, b.into)) Eigen::Map<Eigen::RowVectorXd>(db, o.out) += dy.colwise().sum();
}

// Calls f(row of the weight, row of y) for each position.
template <class F>
void for_each_row(const Tensor& ids, const Tensor& weight, const Tensor& y, F&& f) {
  for (int64_t i = 0; i < ids.elements(); ++i)
    if (const int32_t id = ids.data<int32_t>()[i]; id >= 0) f(matrix(weight).row(id), matrix(y).row(i));
}

void embedding_forward(const Op&, const Forward& f) {
  matrix(f.y).setZero();
  for_each_row(f.x[0], f.params[0], f.y, [](auto row, auto y) { y = row; });
}

void embedding_backward(const Op& op, const Backward& b) {
  const auto padding = static_cast<const Embedding&>(op).options.padding;
  if (!wanted(b.dw, 0, b.into)) return;
  const std::vector<double> before(b.dw[0].data<double>(), b.dw[0].data<double>() + b.dw[0].elements());
  for_each_row(b.x[0], b.dw[0], b.dy, [](auto row, auto dy) { row += dy; });
  const int64_t width = b.dw[0].shape()[1];
  if (padding)
    std::copy_n(before.data() + *padding * width, width, b.dw[0].data<double>() + *padding * width);
}

void multiply_each(Context&, const MatrixProduct& p, const Tensor& first, const Tensor& second,
                   const Tensor& to) {
  for (int64_t i = 0; i < p.count; ++i) {
    const auto factor = [i](const Tensor& t, int64_t rows, int64_t columns, bool transposed) {
      const MatrixView stored(t.data<double>() + i * rows * columns, transposed ? columns : rows,
                              transposed ? rows : columns);
      return transposed ? Eigen::MatrixXd(stored.transpose()) : Eigen::MatrixXd(stored);
    };
    MatrixView(to.data<double>() + i * p.rows * p.columns, p.rows, p.columns) =
        factor(first, p.rows, p.inner, p.first_is_transposed) *
        factor(second, p.inner, p.columns, p.second_is_transposed);
  }
}

}  // namespace

KernelEntry matmul() { return matmul_entry_of(multiply_each); }
KernelEntry conv2d() { return entry_of(conv2d_forward, conv2d_backward); }
KernelEntry conv_transpose2d() { return entry_of(conv_transpose2d_forward, conv_transpose2d_backward); }
KernelEntry embedding() { return entry_of(embedding_forward, embedding_backward); }
KernelEntry linear() { return entry_of(linear_forward, linear_backward); }

}  // namespace antichain::reference
