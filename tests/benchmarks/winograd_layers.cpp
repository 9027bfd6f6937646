// This prints, for the 3 x 3 convolutions of stride 1 of ten models, how fast our Winograd is beside oneDNN's
// Winograd (where oneDNN has one) and its direct convolution, as the engine would call them, on one thread.
// The three take turns in one run, and a figure is the median of the turns. GFLOP/s count the multiplications
// and additions of a direct convolution. ONEDNN_MAX_CPU_ISA=AVX2 shows the loops for AVX2. `--threads` adds
// how many times as fast ours is on so many threads as on one.
//
//   winograd_layers [--imagenet] [--batch N] [--threads N] [LAYER]
//                                       CIFAR forms at batch 32, or ImageNet forms at batch 4;
//                                       of LAYER ("64 -> 64, 32 x 32") only
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layers/conv2d.h"
#include "layers/cpu/winograd.h"
#include "models/model.h"
#include "tests/benchmarks/onednn_convolution.h"

namespace antichain::cpu {
namespace {

constexpr int turns = 15;
const std::vector<std::string> models = {"alexnet",      "vgg16",        "resnet18",    "resnet50",
                                         "resnext50",    "inception_v3", "densenet121", "squeezenet1_0",
                                         "mobilenet_v2", "resnet101"};

struct Layer {
  Shape x, y;
  int pad;
  auto key() const { return std::tuple(y[2], x[1], y[1], x[2], pad, x[3], y[3], x[0]); }
  bool operator<(const Layer& other) const { return key() < other.key(); }
};

// Returns the layers, and in which models each of them is.
std::map<Layer, std::string> layers_of(const ModelOptions& options) {
  std::map<Layer, std::string> layers;
  for (const std::string& model : models) {
    const Graph graph = make_model(model, options);
    for (const Node& node : graph) {
      const auto* conv = dynamic_cast<const Conv2d*>(node.op.get());
      if (!conv || conv->options.kernel != Extent(3) || conv->options.stride != Extent(1) ||
          conv->options.dilation != Extent(1) || conv->options.groups != 1)
        continue;
      const Shape x = graph.shape(node.inputs[0]), y = node.signature.y.shape;
      if (x[1] <= 4 || std::min(y[2], y[3]) < 4) continue;
      std::string& names = layers[{x, y, conv->options.pad.before.h}];
      if (names.find(model) == std::string::npos) names += (names.empty() ? "" : " ") + model;
    }
  }
  return layers;
}

class Measured {
 public:
  explicit Measured(const Layer& layer)
      : layer_(layer), theirs_(layer.x, layer.y, 1, layer.pad), ours_(layer.x, layer.y, layer.pad) {}

  double flops() const { return 18.0 * double(layer_.x[1]) * double(layer_.y.elements()); }
  std::function<void()> ours(int pass, int threads) {
    return [this, pass, threads] {
      const auto &x = theirs_.x, &y = theirs_.y, &w = theirs_.w;
      const int64_t bytes = pass == 0   ? ours_.forward_bytes(threads)
                            : pass == 1 ? ours_.backward_data_bytes(threads)
                                        : ours_.backward_weights_bytes(threads);
      std::byte* workspace = theirs_.context.workspace(bytes);
      if (pass == 0)
        ours_.forward(workspace, threads, x.data<float>(), w.data<float>(), nullptr, y.data<float>());
      if (pass == 1)
        ours_.backward_data(workspace, threads, w.data<float>(), y.data<float>(), x.data<float>());
      if (pass == 2)
        ours_.backward_weights(workspace, threads, x.data<float>(), y.data<float>(), w.data<float>(),
                               Into::overwrite);
    };
  }
  std::function<void()> theirs(int pass, dnnl::algorithm how) { return theirs_.pass(pass, how); }

 private:
  const Layer layer_;
  OnednnConvolution theirs_;
  const Winograd ours_;
};

struct Mean {
  double logs = 0, least = 1e9;
  int count = 0;
  void add(double ratio) { logs += std::log(ratio), least = std::min(least, ratio), ++count; }
  std::string str() const {
    return count ? fmt::format("{:.2f} (least {:.2f}, {} layers)", std::exp(logs / count), least, count)
                 : "-";
  }
};

void print_layers(const ModelOptions& options, const std::string& only, int threads) {
  omp_set_num_threads(1);
  Mean of_winograd[passes], of_direct[passes], of_threads[passes];
  fmt::print("{:<24} {:<8} {:>7} {:>8} {:>7}  {:>8} {:>8} {:>8}  {}\n", "GFLOP/s", "pass", "ours", "winograd",
             "direct", "of wino", "of dir", fmt::format("x {} thr", threads), "models");
  for (const auto& [layer, names] : layers_of(options)) {
    const std::string name = fmt::format("{} x {} -> {}, {} x {}{}", layer.x[0], layer.x[1], layer.y[1],
                                         layer.x[2], layer.x[3], layer.pad ? "" : ", no pad");
    if (name.find(only) == std::string::npos) continue;
    Measured it(layer);
    for (int pass = 0; pass < passes; ++pass) {
      const std::vector<double> seconds =
          medians({it.ours(pass, 1), it.theirs(pass, dnnl::algorithm::convolution_winograd),
                   it.theirs(pass, dnnl::algorithm::convolution_direct), it.ours(pass, threads)},
                  turns);
      std::vector<double> rate;
      for (const double s : seconds) rate.push_back(s > 0 ? 1e-9 * it.flops() / s : 0);
      fmt::print("{:<24} {:<8} {:7.1f} {:8.1f} {:7.1f}  {:>8} {:8.2f} {:8.2f}  {}\n", pass ? "" : name,
                 pass_names[pass], rate[0], rate[1], rate[2],
                 rate[1] > 0 ? fmt::format("{:.2f}", rate[0] / rate[1]) : "-", rate[0] / rate[2],
                 rate[3] / rate[0], pass ? "" : names);
      if (rate[1] > 0) of_winograd[pass].add(rate[0] / rate[1]);
      of_direct[pass].add(rate[0] / rate[2]);
      of_threads[pass].add(rate[3] / rate[0]);
      std::fflush(stdout);
    }
  }
  for (int pass = 0; pass < passes; ++pass)
    fmt::print("{:<8}  of oneDNN's Winograd {}, of its direct convolution {}, by threads {}\n",
               pass_names[pass], of_winograd[pass].str(), of_direct[pass].str(), of_threads[pass].str());
}

}  // namespace
}  // namespace antichain::cpu

int main(int argc, char** argv) {
  antichain::ModelOptions options;
  std::string only;
  int threads = 1;
  for (int i = 1; i < argc; ++i)
    if (const std::string_view word = argv[i]; word == "--imagenet")
      options.form = antichain::Form::imagenet, options.microbatch = 4;
    else if (word == "--threads" && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else if (word == "--batch" && i + 1 < argc)
      options.microbatch = std::atoi(argv[++i]);
    else
      only = word;
  antichain::cpu::print_layers(options, only, threads);
}
