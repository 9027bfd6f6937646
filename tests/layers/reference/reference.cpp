#include "tests/layers/reference/reference.h"

#include <cstring>

#include "framework/sgd.h"

namespace antichain::reference {
namespace {

void sgd(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const SgdOptions& o = static_cast<const Sgd&>(optimiser).options;
  for (int64_t i = 0; i < t.w.elements(); ++i) {
    double& weight = t.w.data<double>()[i];
    const double g = t.dw.data<double>()[i] + o.weight_decay * weight;
    double v = g;
    if (!t.slots.empty()) v = t.slots[0].data<double>()[i] = o.momentum * t.slots[0].data<double>()[i] + g;
    weight -= rate.value * (o.nesterov ? g + o.momentum * v : v);
  }
}

class ReferenceBackend : public Backend {
 public:
  ReferenceBackend() {
    kernels_ = {{"activate", activate()},
                {"adaptive_average_pool", adaptive_average_pool()},
                {"add", reference::add()},
                {"attention", attention()},
                {"average_pool", pool()},
                {"batch_norm", batch_norm()},
                {"class_token", class_token()},
                {"concat", concat()},
                {"constant", constant()},
                {"conv2d", conv2d()},
                {"conv_transpose2d", conv_transpose2d()},
                {"dropout", dropout()},
                {"elementwise", elementwise()},
                {"embedding", embedding()},
                {"flatten", flatten()},
                {"formula_loss", formula_loss()},
                {"gather", gather()},
                {"global_average_pool", global_average_pool()},
                {"group_norm", group_norm()},
                {"interpolate", interpolate()},
                {"layer_norm", layer_norm()},
                {"layer_scale", layer_scale()},
                {"linear", linear()},
                {"matmul", matmul()},
                {"max_pool", pool()},
                {"mean", mean()},
                {"multiply", multiply()},
                {"permute", permute()},
                {"relu", relu()},
                {"reorder", flatten()},  // it has one layout
                {"reshape", flatten()},
                {"rotary", rotary()},
                {"slice", slice()},
                {"softmax", softmax()},
                {"softmax_cross_entropy", softmax_cross_entropy()},
                {"spectral_norm", spectral_norm()},
                {"stochastic_depth", stochastic_depth()}};
    updates_ = {{"sgd", one_by_one(sgd)}};
  }

  std::string name() const override { return "reference"; }
  std::string description() const override { return "double precision, one thread"; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override { return allocate_host(bytes); }
  void copy(const Context&, const Tensor& from, const Tensor& to) const override {
    std::memcpy(to.raw(), from.raw(), size_t(to.bytes()));
  }
  void add(Context&, const Tensor& x, const Tensor& y) const override {
    for (int64_t i = 0; i < y.elements(); ++i) y.data<double>()[i] += x.data<double>()[i];
  }
};

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(const Op& op, ForwardFunction forward, BackwardFunction backward)
      : op_(&op), forward_(forward), backward_(backward) {}
  void forward(Context&, const Forward& f) const override { forward_(*op_, f); }
  void backward(Context&, const Backward& b) const override { backward_(*op_, b); }

 private:
  const Op* op_;
  ForwardFunction forward_;
  BackwardFunction backward_;
};

}  // namespace

const Backend& backend() {
  static const bool registered = (register_backend(std::make_unique<ReferenceBackend>()), true);
  (void)registered;
  return antichain::backend("reference");
}

TensorSpec in_double(TensorSpec spec) {
  spec.layout = Layout::plain;
  if (spec.dtype == DType::f32) spec.dtype = DType::f64;
  return spec;
}

Lowering plain_lowering(const Op& op, std::span<const Shape> x) {
  return {.x = std::vector<Layout>(x.size(), Layout::plain),
          .params = std::vector<Layout>(op.infer(x).params.size(), Layout::plain),
          .keeps_x = true,
          .keeps_y = true};
}

KernelEntry entry_of(ForwardFunction forward, BackwardFunction backward) {
  return {.lower = [](const Op& op, std::span<const Shape> x, std::span<const Layout>,
                      Precision) { return plain_lowering(op, x); },
          .make = [=](const Op& op, std::span<const TensorSpec>, const Lowering&) -> std::unique_ptr<Kernel> {
            return std::make_unique<FunctionKernel>(op, forward, backward);
          }};
}

double* wanted(std::span<const Tensor> gradients, size_t i, Into into) {
  if (i >= gradients.size() || !gradients[i]) return nullptr;
  if (into == Into::overwrite) std::memset(gradients[i].raw(), 0, size_t(gradients[i].bytes()));
  return gradients[i].data<double>();
}

}  // namespace antichain::reference
