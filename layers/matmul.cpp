#include "layers/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {
namespace {

struct MatmulProducts {
  MatrixProduct y;       // of a and b
  MatrixProduct da, db;  // da: of dy and b, or with transpose_a of b and dy; db: of a and dy, or likewise
};

MatmulProducts products_of(const Matmul& op, const Shape& a, const Shape& b) {
  const auto [ta, tb] = op.options;
  const int last = a.rank() - 1;
  const int64_t rows = a[ta ? last : last - 1], inner = a[ta ? last - 1 : last];
  const int64_t columns = b[tb ? last - 1 : last];
  int64_t count = 1;
  for (int axis = 0; axis < last - 1; ++axis) count *= a[axis];
  return {.y = {count, rows, inner, columns, ta, tb},
          .da = ta ? MatrixProduct{count, inner, columns, rows, tb, true}
                   : MatrixProduct{count, rows, columns, inner, false, !tb},
          .db = tb ? MatrixProduct{count, columns, rows, inner, true, ta}
                   : MatrixProduct{count, inner, rows, columns, !ta, false}};
}

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(const Matmul& op, const Shape& a, const Shape& b, MultiplyEach multiply)
      : options_(op.options), products_(products_of(op, a, b)), multiply_(multiply) {}

  void forward(Context& context, const Forward& f) const override {
    multiply_(context, products_.y, f.x[0], f.x[1], f.y);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty()) return;
    if (b.dx[0]) multiply(context, products_.da, b.dy, b.x[1], options_.transpose_a, b.dx[0]);
    if (b.dx[1]) multiply(context, products_.db, b.x[0], b.dy, options_.transpose_b, b.dx[1]);
  }

 private:
  void multiply(Context& context, const MatrixProduct& product, const Tensor& first, const Tensor& second,
                bool swaps, const Tensor& to) const {
    multiply_(context, product, swaps ? second : first, swaps ? first : second, to);
  }

  const MatmulOptions options_;
  const MatmulProducts products_;
  const MultiplyEach multiply_;
};

}  // namespace

std::string Matmul::str() const {
  return fmt::format("matmul({}a, {}b)", options.transpose_a ? "transposed " : "",
                     options.transpose_b ? "transposed " : "");
}

Signature Matmul::infer(std::span<const Shape> x) const {
  check_inputs("matmul", x, 2, 0);
  const Shape &a = x[0], &b = x[1];
  const int rank = a.rank();
  if (rank < 3 || b.rank() != rank || !std::equal(a.begin(), a.end() - 2, b.begin()))
    throw Error(
        fmt::format("{} wants samples of matrices, as many of both, not {} and {}", str(), a.str(), b.str()));
  const MatrixProduct y = products_of(*this, a, b).y;
  if (b[rank - (options.transpose_b ? 1 : 2)] != y.inner)
    throw Error(
        fmt::format("{} can't multiply {} and {}, whose inner extents differ", str(), a.str(), b.str()));
  Signature s;
  s.y = {.shape = a};
  s.y.shape[rank - 2] = y.rows;
  s.y.shape[rank - 1] = y.columns;
  s.forward_flops = 2 * double(s.y.shape.elements()) * double(y.inner);
  return s;
}

KernelEntry matmul_entry_of(MultiplyEach multiply) {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision) -> Lowering {
            return {.x = {Layout::plain, Layout::plain}, .keeps_x = true};
          },
          .make = [multiply](const Op& op, std::span<const TensorSpec> x,
                             const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<MatmulKernel>(static_cast<const Matmul&>(op), x[0].shape, x[1].shape,
                                                  multiply);
          }};
}

NodeId matmul(Graph& graph, std::string name, NodeId a, NodeId b, MatmulOptions options) {
  return graph.add(std::move(name), std::make_shared<Matmul>(options), {a, b});
}

}  // namespace antichain
