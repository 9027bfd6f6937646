// Times batch norm with an activation function in its passes, beside the two operators one after the other,
// on the CPU engine and one thread. Shapes are those of MobileNet-v2 and EfficientNet-B0 at 32 images.
//
//   norm_times [seconds for each pass, 0.2 by default] [bf16]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "framework/backend.h"
#include "framework/context.h"
#include "layers/activate.h"
#include "layers/batch_norm.h"
#include "layers/cpu/backend.h"
#include "layers/relu.h"
#include "tests/benchmarks/kernel_times.h"

namespace antichain {
namespace {

// Timed is an operator of one input with its tensors; a second one may read its output.
struct Timed {
  Lowering lowering;
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> x, params, buffers, statistics, stash, dx, dw;
  Tensor y, dy;

  Timed(const Op& op, const Shape& shape, Precision precision, std::optional<Tensor> input = {}) {
    const KernelEntry& entry = backend("cpu").entry(op.type());
    const Signature signature = op.infer({&shape, 1});
    const Layout offered = cpu_layout();
    lowering = entry.lower(op, {&shape, 1}, {&offered, 1}, precision);
    const TensorSpec spec{shape, storage(precision), offered};
    kernel = entry.make(op, {&spec, 1}, lowering);
    x = {input ? *input : filled(shape, spec.dtype, offered, "x")};
    y = Tensor::host(spec);
    dy = filled(shape, spec.dtype, offered, "dy");
    dx = {Tensor::host(spec)};
    for (const ParamSpec& p : signature.params) {
      params.push_back(filled(p.shape, DType::f32, Layout::plain, "p"));
      dw.push_back(Tensor::host({p.shape}));
    }
    for (const ParamSpec& b : signature.buffers) buffers.push_back(Tensor::host({b.shape, b.dtype}));
    for (const TensorSpec& s : signature.statistics) statistics.push_back(Tensor::host(s));
    for (const TensorSpec& s : lowering.stash) stash.push_back(Tensor::host(s));
  }

  void forward(Context& context) const {
    kernel->forward(
        context,
        {.x = x, .params = params, .buffers = buffers, .y = y, .stash = stash, .statistics = statistics});
  }
  void backward(Context& context, const Tensor& gradient) const {
    kernel->backward(context, {.x = x,
                               .params = params,
                               .y = y,
                               .dy = gradient,
                               .stash = stash,
                               .statistics = statistics,
                               .dx = dx,
                               .dw = dw,
                               .into = Into::overwrite});
  }

  // Returns the layout of convolutions' outputs.
  static Layout cpu_layout() {
    const Layout foreign = Layout::nhwc;
    const Shape any{1, 16, 1, 2};
    return backend("cpu").entry("relu").lower(Relu(), {&any, 1}, {&foreign, 1}, Precision::float32).y;
  }
};

void compare(Context& context, const Shape& shape, ActivationFunction function, Precision precision,
             double seconds) {
  const Timed fused(BatchNorm({.activation = function}), shape, precision),
      norm(BatchNorm({}), shape, precision), behind(Activate(function), shape, precision, norm.y);
  const auto forward_apart = [&] { norm.forward(context), behind.forward(context); };
  const auto backward_apart = [&] {
    behind.backward(context, behind.dy);
    norm.backward(context, behind.dx[0]);
  };
  const double forward[] = {fastest_us(seconds, forward_apart),
                            fastest_us(seconds, [&] { fused.forward(context); })};
  const double backward[] = {fastest_us(seconds, backward_apart),
                             fastest_us(seconds, [&] { fused.backward(context, fused.dy); })};
  fmt::print("{:10} {:20} {:9.0f} {:9.0f} {:6.2f} {:10.0f} {:9.0f} {:6.2f} {:8.2f}\n", name_of(function),
             shape.str(), forward[0], forward[1], forward[0] / forward[1], backward[0], backward[1],
             backward[0] / backward[1], (forward[0] + backward[0]) / (forward[1] + backward[1]));
  std::fflush(stdout);
}

}  // namespace
}  // namespace antichain

int main(int count, char** words) {
  using namespace antichain;
  register_cpu_backend();
  Context context(backend("cpu"));
  backend("cpu").enter(context);
  const double seconds = count > 1 ? std::atof(words[1]) : 0.2;
  const bool bf16 = count > 2 && words[2] == std::string_view("bf16");
  const Precision precision = bf16 ? Precision::bf16 : Precision::float32;
  fmt::print("microseconds of two operators, of one, and how many times as fast one is\n");
  fmt::print("{:10} {:20} {:>27}{:>27}{:>9}\n", "function", "images", "forward: two, one, ratio",
             "backward: two, one, ratio", "both");
  for (const ActivationFunction function :
       {ActivationFunction::relu6, ActivationFunction::hardswish, ActivationFunction::silu})
    for (const Shape& shape :
         {Shape{32, 32, 112, 112}, Shape{32, 144, 56, 56}, Shape{32, 192, 16, 16}, Shape{32, 576, 8, 8}})
      compare(context, shape, function, precision, seconds);
}
