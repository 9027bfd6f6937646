// Times the three passes of convolutions on the CPU engine, for a script that compares them
// (depthwise.py). It reads one convolution a line,
//
//   images channels filters size kernel stride pad groups float32|bf16 seconds
//
// and answers each by one line: the microseconds of forward, input gradient and weight gradient. Each is the
// fastest of the calls that fit into `seconds`, because whatever else a machine does only adds to a time.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv2d.h"
#include "layers/cpu/backend.h"
#include "tests/benchmarks/kernel_times.h"

namespace antichain {
namespace {

struct Wanted {
  Shape x;
  Conv2dOptions options;
  Precision precision = Precision::float32;
  double seconds = 0;
};

Wanted parse(const std::string& line) {
  std::istringstream in(line);
  int64_t images, channels, filters, size;
  int kernel, stride, pad, groups;
  std::string precision;
  Wanted w;
  in >> images >> channels >> filters >> size >> kernel >> stride >> pad >> groups >> precision >> w.seconds;
  if (!in || (precision != "float32" && precision != "bf16"))
    throw Error(fmt::format("'{}' is no line of ten fields that describe a convolution", line));
  w.x = {images, channels, size, size};
  w.options = {
      .out = filters, .kernel = kernel, .stride = stride, .pad = pad, .groups = groups, .bias = false};
  if (precision == "bf16") w.precision = Precision::bf16;
  return w;
}

std::string times(const Backend& cpu, Context& context, const Wanted& w) {
  const Conv2d op(w.options);
  const Signature signature = op.infer({&w.x, 1});
  const KernelEntry& entry = cpu.entry(op.type());
  const Layout plain[] = {Layout::plain};
  const Lowering lowering = entry.lower(op, {&w.x, 1}, plain, w.precision);
  const DType dtype = storage(lowering.precision);
  const TensorSpec x_spec[] = {{w.x, dtype, lowering.x[0]}};
  const auto kernel = entry.make(op, x_spec, lowering);
  const Tensor x[] = {filled(w.x, dtype, lowering.x[0], "x")};
  const Tensor dx[] = {Tensor::host(x_spec[0])};
  const Tensor y = Tensor::host({signature.y.shape, dtype, lowering.y});
  const Tensor dy = filled(signature.y.shape, dtype, lowering.y, "dy");
  const Tensor weight[] = {filled(signature.params[0].shape, DType::f32, lowering.params[0], "w")};
  const Tensor dw[] = {Tensor::host(weight[0].spec())};
  std::vector<Tensor> prepared;
  for (const TensorSpec& s : lowering.prepared) prepared.push_back(Tensor::host(s));
  kernel->prepare(context, weight, prepared);
  const auto backward = [&](std::span<const Tensor> to_x, std::span<const Tensor> to_w) {
    Backward b{.x = x, .params = weight, .prepared = prepared};
    b.dy = dy;
    b.dx = to_x;
    b.dw = to_w;
    b.into = Into::overwrite;
    kernel->backward(context, b);
  };
  const double forward = fastest_us(w.seconds, [&] {
    Forward f{.x = x, .params = weight, .prepared = prepared};
    f.y = y;
    kernel->forward(context, f);
  });
  const double input = fastest_us(w.seconds, [&] { backward(dx, {}); });
  const double weights = fastest_us(w.seconds, [&] { backward({}, dw); });
  return fmt::format("{:.1f} {:.1f} {:.1f}", forward, input, weights);
}

}  // namespace
}  // namespace antichain

int main() {
  using namespace antichain;
  try {
    register_cpu_backend();
    const Backend& cpu = backend("cpu");
    Context context(cpu);
    cpu.enter(context);
    for (std::string line; std::getline(std::cin, line);) {
      fmt::print("{}\n", times(cpu, context, parse(line)));
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
