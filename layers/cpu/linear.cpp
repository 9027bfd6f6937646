// Linear layers use oneDNN's inner product and matrix product, all in plain row-major order. The positions of
// all samples are rows of one matrix.
//
// In bf16 the forward pass and the input gradient want weights in formats of oneDNN's, often the same: they
// are prepared once a step. Products are summed in float32, and weight gradients stay float32.
#include "layers/linear.h"

#include <algorithm>
#include <vector>

#include "framework/error.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/adapted.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl_versions.h"
#include "layers/cpu/elementwise_loops.h"

namespace antichain::cpu {
namespace {

// Has oneDNN generate its code for products in float32: 3.4 MiB on AVX-512, whatever the network. It would
// else do so at the first product, where small objects that stay come to lie between large ones that do not,
// and the allocator does not use such a hole again.
void generate_products() {
  static const bool once = [] {
    constexpr int size = 64;
    const std::vector<float> a(size * size), b(size * size);
    std::vector<float> c(size * size);
    return dnnl::sgemm('T', 'N', size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(), size) ==
           dnnl::status::success;
  }();
  ANTICHAIN_CHECK(once, "oneDNN multiplies two matrices");
}

class LinearKernel : public Kernel {
 public:
  LinearKernel(const Linear& op, const Shape& x, Precision precision)
      : has_bias_(op.options.bias),
        in_first_(op.options.in_first),
        type_(type_of(storage(precision))),
        n_(LinearSizes(op, x).rows),
        in_(LinearSizes(op, x).in),
        out_(op.options.out),
        x_(describe_plain({n_, in_}, type_)),
        w_(in_first_ ? transposed(out_, in_) : describe_plain({out_, in_})),
        bias_(has_bias_ ? describe_plain({out_}) : Desc()),
        y_(describe_plain({n_, out_}, type_)) {
    checked("create a linear layer", [&] { create(); });
  }

  int64_t workspace_bytes() const {
    return std::max({forward_.scratch_bytes(), backward_data_.scratch_bytes(), product_.scratch_bytes(),
                     added_product_.scratch_bytes(), weights_.scratch_bytes()});
  }

  std::vector<TensorSpec> prepared() const { return weights_.specs(); }

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    weights_.run(context, params[0], prepared);
  }

  void forward(Context& context, const Forward& f) const override {
    Workspace workspace(context, forward_.scratch_bytes());
    const Tensor& w = weights_.forward(f.params[0], f.prepared);
    std::vector<Argument> arguments = {{DNNL_ARG_SRC, x_, f.x[0].raw()},
                                       {DNNL_ARG_WEIGHTS, w_forward_, w.raw()},
                                       {DNNL_ARG_DST, y_, f.y.raw()}};
    if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, bias_, f.params[1].raw()});
    forward_.run(workspace, arguments);
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dw.empty()) backward_weights(context, b);
    if (b.dx.empty() || !b.dx[0]) return;
    Workspace workspace(context, backward_data_.scratch_bytes());
    const Tensor& w = weights_.backward(b.params[0], b.prepared);
    backward_data_.run(workspace, {{DNNL_ARG_DIFF_SRC, x_, b.dx[0].raw()},
                                   {DNNL_ARG_WEIGHTS, w_backward_, w.raw()},
                                   {DNNL_ARG_DIFF_DST, y_, b.dy.raw()}});
  }

 private:
  bool in_float32() const { return type_ == dnnl::memory::data_type::f32; }

  void create() {
    const Desc w = in_float32() ? w_ : Desc({out_, in_}, type_, dnnl::memory::format_tag::any);
    const auto forward = pass_of<dnnl::inner_product_forward>(
        user_scratchpad(), dnnl::prop_kind::forward_training, x_, w, bias_, y_);
    const auto backward = backward_pass_of<dnnl::inner_product_backward_data>(forward, x_, w, y_);
    forward_ = Primitive("create a linear layer", forward);
    backward_data_ = Primitive("create a linear layer's input gradient", backward);
    w_forward_ = forward.weights_desc();
    w_backward_ = backward.weights_desc();
    if (in_float32()) return generate_products();
    weights_ = PreparedWeights(w_, w_forward_, w_backward_);
    product_ = weight_product(false);
    added_product_ = weight_product(true);
  }

  // Makes the product dw (float32) = dyᵀ · x, or xᵀ · dy where the weight is in x out, or the one that adds
  // it to dw.
  Primitive weight_product(bool adds) const {
    dnnl::primitive_attr attributes = user_scratchpad();
    dnnl::post_ops sum;
    sum.append_sum();
    if (adds) attributes.set_post_ops(sum);
    return {"create a linear layer's weight gradient",
            pass_of<dnnl::matmul>(attributes, turned(), in_first_ ? y_ : x_, stored())};
  }

  // Describes the transpose of a plain matrix, columns x rows.
  static Desc transposed(int64_t rows, int64_t columns,
                         dnnl::memory::data_type type = dnnl::memory::data_type::f32) {
    return {{rows, columns}, type, dnnl::memory::dims{1, rows}};
  }
  // Returns the first factor of the weight gradient, dyᵀ or xᵀ.
  Desc turned() const { return in_first_ ? transposed(in_, n_, type_) : transposed(out_, n_, type_); }
  // Returns the weight as a plain matrix in the order in which it is stored.
  Desc stored() const { return in_first_ ? describe_plain({in_, out_}) : w_; }

  // Writes straight into the gradients, whether they are overwritten or added to: no workspace as large as
  // the weights is needed.
  void backward_weights(Context& context, const Backward& b) const {
    const bool adds = b.into == Into::accumulate;
    if (b.dw[0]) in_float32() ? multiply(b, adds) : multiply_bf16(context, b, adds);
    if (!has_bias_ || b.dw.size() < 2 || !b.dw[1]) return;
    with_type(b.dy.dtype(),
              [&]<class T>() { sum_rows(b.dy.data<T>(), b.dw[1].data<float>(), adds, context.threads()); });
  }

  void multiply(const Backward& b, bool adds) const {
    const float *x = b.x[0].data<float>(), *dy = b.dy.data<float>();
    const int64_t rows = in_first_ ? in_ : out_, columns = in_first_ ? out_ : in_;
    const auto status =
        dnnl::sgemm('T', 'N', rows, columns, n_, 1, in_first_ ? x : dy, rows, in_first_ ? dy : x, columns,
                    adds ? 1.0f : 0.0f, b.dw[0].data<float>(), columns);
    ANTICHAIN_CHECK(status == dnnl::status::success, "oneDNN multiplies two matrices");
  }

  void multiply_bf16(Context& context, const Backward& b, bool adds) const {
    const Primitive& product = adds ? added_product_ : product_;
    Workspace workspace(context, product.scratch_bytes());
    product.run(workspace, {{DNNL_ARG_SRC, turned(), (in_first_ ? b.x[0] : b.dy).raw()},
                            {DNNL_ARG_WEIGHTS, in_first_ ? y_ : x_, (in_first_ ? b.dy : b.x[0]).raw()},
                            {DNNL_ARG_DST, stored(), b.dw[0].raw()}});
  }

  // Each sum is in the order of the rows. Threads share columns. The sums of a part stay in the first-level
  // cache, and its numbers of a row lie together, so that the processor reads ahead.
  template <class T>
  void sum_rows(const T* dy, float* db, bool adds, int threads) const {
    constexpr int64_t most = 1024;
    const int64_t width = std::min(most, (out_ + threads - 1) / threads);
    for_each_plane((out_ + width - 1) / width, threads, [&](int64_t part) {
      const int64_t first = part * width, count = std::min(width, out_ - first);
      double sums[most];
      for (int64_t k = 0; k < count; ++k) sums[k] = adds ? double(db[first + k]) : 0;
      for (int64_t i = 0; i < n_; ++i) elementwise_loops<T>().add_to_sums(dy + i * out_ + first, sums, count);
      for (int64_t k = 0; k < count; ++k) db[first + k] = float(sums[k]);
    });
  }

  bool has_bias_, in_first_;
  dnnl::memory::data_type type_;  // of x and y
  int64_t n_, in_, out_;
  Desc x_, w_, bias_, y_, w_forward_, w_backward_;
  Primitive forward_, backward_data_;
  Primitive product_, added_product_;  // of bf16
  PreparedWeights weights_;            // likewise
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
  const auto& linear = dynamic_cast<const Linear&>(op);
  ANTICHAIN_CHECK(!linear.options.relu, "the cpu engine fuses no ReLU into a linear layer");
  const LinearKernel kernel(linear, x[0], precision);
  Lowering l;
  l.x = {Layout::plain};
  l.params.assign(linear.options.bias ? 2 : 1, Layout::plain);
  l.precision = precision;
  l.prepared = kernel.prepared();
  l.keeps_x = true;
  l.workspace_bytes = kernel.workspace_bytes();
  return l;
}

}  // namespace

KernelEntry linear_entry() {
  return {lower, [](const Op& op, std::span<const TensorSpec> x, const Lowering& lowering) {
            return std::make_unique<LinearKernel>(dynamic_cast<const Linear&>(op), x[0].shape,
                                                  lowering.precision);
          }};
}

}  // namespace antichain::cpu
