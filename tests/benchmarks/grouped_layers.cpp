// This prints, for the grouped convolutions of ResNeXts, how fast the engine computes each pass beside a
// direct convolution by oneDNN that takes as many FLOPs on the same map without groups, on one thread. The
// two take turns in one run, and a figure is the median of the turns.
//
//   grouped_layers [--imagenet] [--batch N]      CIFAR forms at batch 32, or ImageNet forms at batch 4
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layers/conv2d.h"
#include "models/model.h"
#include "tests/benchmarks/onednn_convolution.h"

namespace antichain::cpu {
namespace {

constexpr int turns = 15;

struct Grouped {
  std::shared_ptr<const Op> op;
  Shape x, y;
  std::string models;
  int count = 0;
  const Conv2dOptions& options() const { return dynamic_cast<const Conv2d&>(*op).options; }
};

std::vector<Grouped> grouped_layers(const ModelOptions& options) {
  std::map<std::tuple<int64_t, int64_t, int64_t>, Grouped> layers;
  for (const std::string model : {"resnext50", "resnext101"}) {
    const Graph graph = make_model(model, options);
    for (const Node& node : graph) {
      const auto* conv = dynamic_cast<const Conv2d*>(node.op.get());
      if (!conv || conv->options.groups == 1) continue;
      const Shape x = graph.shape(node.inputs[0]), y = node.signature.y.shape;
      Grouped& layer = layers[{-x[2], x[1], y[2]}];
      if (!layer.op) layer = {node.op, x, y, ""};
      if (layer.models.find(model) == std::string::npos) layer.models += " " + model;
      ++layer.count;
    }
  }
  std::vector<Grouped> all;
  for (const auto& [key, layer] : layers) all.push_back(layer);
  return all;
}

// The passes of an operator with one input, as a stage calls them.
class EnginePasses {
 public:
  EnginePasses(const Op& op, const Shape& x) : context_(cpu_engine()) {
    const Signature s = op.infer({&x, 1});
    const KernelEntry& entry = cpu_engine().entry(op.type());
    const std::vector<Layout> offered = {blocked()};
    const Lowering lowering = entry.lower(op, {&x, 1}, offered, Precision::float32);
    x_ = {zeros({x, DType::f32, lowering.x[0]})};
    y_ = zeros({s.y.shape, DType::f32, lowering.y});
    for (size_t i = 0; i < s.params.size(); ++i)
      w_.push_back(zeros({s.params[i].shape, DType::f32, lowering.params[i]}));
    const std::vector<TensorSpec> specs = {x_[0].spec()};
    kernel_ = entry.make(op, specs, lowering);
  }
  void run(int pass) {
    if (pass == 0) kernel_->forward(context_, {.x = x_, .params = w_, .y = y_});
    if (pass == 1) kernel_->backward(context_, {.x = x_, .params = w_, .dy = y_, .dx = x_});
    if (pass == 2) kernel_->backward(context_, {.x = x_, .params = w_, .dy = y_, .dw = w_});
  }

 private:
  Context context_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> x_, w_;
  Tensor y_;
};

void print_layers(const ModelOptions& options) {
  omp_set_num_threads(1);
  fmt::print("{:<34}{:<9}{:>8}{:>8}{:>7}  {}\n", "GFLOP/s", "pass", "ours", "direct", "share",
             "models, and how many such layers they have");
  for (const Grouped& layer : grouped_layers(options)) {
    const Conv2dOptions& o = layer.options();
    const int64_t lanes = has_avx512() ? 16 : 8;
    const auto channels =
        int64_t(std::lround(double(layer.x[1]) / std::sqrt(o.groups) / double(lanes))) * lanes;
    EnginePasses ours(*layer.op, layer.x);
    OnednnConvolution dense({layer.x[0], channels, layer.x[2], layer.x[3]},
                            {layer.y[0], channels, layer.y[2], layer.y[3]}, o.stride.h, o.pad.before.h);
    const double of_pixels = 18e-9 * double(layer.y[0] * layer.y[2] * layer.y[3]);
    const double gflop = of_pixels * double(layer.x[1] * layer.x[1] / o.groups),
                 dense_gflop = of_pixels * double(channels * channels);
    for (int pass = 0; pass < passes; ++pass) {
      const std::vector<double> seconds =
          medians({[&] { ours.run(pass); }, dense.pass(pass, dnnl::algorithm::convolution_direct)}, turns);
      const double rate = gflop / seconds[0], direct = dense_gflop / seconds[1];
      fmt::print("{:<34}{:<9}{:8.1f}{:8.1f}{:7.2f}  {}\n",
                 pass ? ""
                      : fmt::format("{} x {} in {} of {}, {} to {}", layer.x[0], layer.x[1], o.groups,
                                    layer.x[1] / o.groups, layer.x[2], layer.y[2]),
                 pass_names[pass], rate, direct, rate / direct,
                 pass ? "" : fmt::format("{}: {}", layer.models, layer.count));
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace antichain::cpu

int main(int argc, char** argv) {
  antichain::ModelOptions options;
  for (int i = 1; i < argc; ++i)
    if (const std::string_view word = argv[i]; word == "--imagenet")
      options.form = antichain::Form::imagenet, options.microbatch = 4;
    else if (word == "--batch" && i + 1 < argc)
      options.microbatch = std::atoi(argv[++i]);
  antichain::cpu::print_layers(options);
}
