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
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layers/conv2d.h"
#include "layers/cpu/adapted.h"
#include "layers/cpu/dnnl_versions.h"
#include "layers/cpu/winograd.h"
#include "models/model.h"
#include "tests/cpu_engine.h"

namespace antichain::cpu {
namespace {

constexpr int turns = 15;
constexpr int passes = 3;
const char* const pass_names[passes] = {"forward", "data", "weights"};
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
      : layer_(layer),
        x_(filled({layer.x, DType::f32, blocked()})),
        y_(filled({layer.y, DType::f32, blocked()})),
        w_(filled({{layer.y[1], layer.x[1], 3, 3},
                   DType::f32,
                   has_avx512() ? Layout::OIhw16i16o : Layout::OIhw8i8o})),
        ours_(layer.x, layer.y, layer.pad),
        context_(cpu_engine()) {}

  double flops() const { return 18.0 * double(layer_.x[1]) * double(layer_.y.elements()); }
  std::function<void()> ours(int pass, int threads) {
    return [this, pass, threads] {
      const int64_t bytes = pass == 0   ? ours_.forward_bytes(threads)
                            : pass == 1 ? ours_.backward_data_bytes(threads)
                                        : ours_.backward_weights_bytes(threads);
      std::byte* workspace = context_.workspace(bytes);
      if (pass == 0)
        ours_.forward(workspace, threads, x_.data<float>(), w_.data<float>(), nullptr, y_.data<float>());
      if (pass == 1)
        ours_.backward_data(workspace, threads, w_.data<float>(), y_.data<float>(), x_.data<float>());
      if (pass == 2)
        ours_.backward_weights(workspace, threads, x_.data<float>(), y_.data<float>(), w_.data<float>(),
                               Into::overwrite);
    };
  }
  // Returns nothing where oneDNN has no such code.
  std::function<void()> theirs(int pass, dnnl::algorithm how) {
    using dnnl::prop_kind;
    const dnnl::memory::dims pad{layer_.pad, layer_.pad}, stride{1, 1}, dilation{0, 0};
    const Desc x = describe(x_.spec()), y = describe(y_.spec()), w = describe(w_.spec());
    const Desc any(w.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    try {
      const auto forward = pass_of<dnnl::convolution_forward>(
          user_scratchpad(), prop_kind::forward_training, how, x, any, Desc(), y, stride, dilation, pad, pad);
      std::optional<Adapted> it;
      if (pass == 0)
        it = Adapted("forward", forward,
                     {{DNNL_ARG_SRC, Direction::in, x, x},
                      {DNNL_ARG_WEIGHTS, Direction::in, w, forward.weights_desc()},
                      {DNNL_ARG_DST, Direction::out, y, y}});
      if (pass == 1) {
        const auto d = backward_pass_of<dnnl::convolution_backward_data>(forward, how, x, any, y, stride,
                                                                         dilation, pad, pad);
        it = Adapted("data", d,
                     {{DNNL_ARG_DIFF_SRC, Direction::out, x, x},
                      {DNNL_ARG_WEIGHTS, Direction::in, w, d.weights_desc()},
                      {DNNL_ARG_DIFF_DST, Direction::in, y, y}});
      }
      if (pass == 2) {
        const auto d = backward_pass_of<dnnl::convolution_backward_weights>(forward, how, x, any, y, stride,
                                                                            dilation, pad, pad);
        it = Adapted("weights", d,
                     {{DNNL_ARG_SRC, Direction::in, x, x},
                      {DNNL_ARG_DIFF_WEIGHTS, Direction::out, w, d.diff_weights_desc()},
                      {DNNL_ARG_DIFF_DST, Direction::in, y, y}});
      }
      return [this, it = *it] {
        Workspace workspace(context_, it.workspace_bytes());
        it.run(workspace, {x_.raw(), w_.raw(), y_.raw()});
      };
    } catch (const dnnl::error&) {
      return {};
    }
  }

 private:
  // All numbers are zero, and stay so though each pass reads what another wrote. Times do not depend on it.
  static Tensor filled(const TensorSpec& spec) {
    Tensor t = Tensor::host(spec);
    std::fill_n(t.data<float>(), t.bytes() / int64_t(sizeof(float)), 0.0f);
    return t;
  }
  const Layer layer_;
  Tensor x_, y_, w_;
  const Winograd ours_;
  Context context_;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + int64_t(all.size() / 2));
  return all[all.size() / 2];
}

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
      constexpr int all_ways = 4;
      const std::function<void()> ways[all_ways] = {
          it.ours(pass, 1), it.theirs(pass, dnnl::algorithm::convolution_winograd),
          it.theirs(pass, dnnl::algorithm::convolution_direct), it.ours(pass, threads)};
      std::vector<double> seconds[all_ways];
      for (int turn = -1; turn < turns; ++turn)  // once before any is measured
        for (int way = 0; way < all_ways; ++way)
          if (const double took = ways[way] ? seconds_of(ways[way]) : 0; took > 0 && turn >= 0)
            seconds[way].push_back(took);
      double rate[all_ways] = {};
      for (int way = 0; way < all_ways; ++way)
        if (ways[way]) rate[way] = 1e-9 * it.flops() / median(seconds[way]);
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
