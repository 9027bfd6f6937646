// Benchmarks compare our own convolutions with oneDNN's of 3 x 3. This file calls those as the engine would,
// and takes times.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "layers/cpu/adapted.h"
#include "layers/cpu/dnnl_versions.h"
#include "tests/cpu_engine.h"

namespace antichain::cpu {

constexpr int passes = 3;
inline const char* const pass_names[passes] = {"forward", "data", "weights"};

// All numbers are zero, and stay so though each pass reads what another wrote. Times do not depend on it.
inline Tensor zeros(const TensorSpec& spec) {
  Tensor t = Tensor::host(spec);
  std::fill_n(t.data<float>(), t.bytes() / int64_t(sizeof(float)), 0.0f);
  return t;
}

class OnednnConvolution {
 public:
  OnednnConvolution(const Shape& x_shape, const Shape& y_shape, int stride, int pad)
      : x(zeros({x_shape, DType::f32, blocked()})),
        y(zeros({y_shape, DType::f32, blocked()})),
        w(zeros({{y_shape[1], x_shape[1], 3, 3},
                 DType::f32,
                 has_avx512() ? Layout::OIhw16i16o : Layout::OIhw8i8o})),
        context(cpu_engine()),
        stride_{stride, stride},
        pad_{pad, pad} {}

  // Returns nothing where oneDNN has no such code.
  std::function<void()> pass(int number, dnnl::algorithm how) {
    using dnnl::prop_kind;
    const dnnl::memory::dims dilation{0, 0};
    const Desc of_x = describe(x.spec()), of_y = describe(y.spec()), of_w = describe(w.spec());
    const Desc any(of_w.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    try {
      const auto forward =
          pass_of<dnnl::convolution_forward>(user_scratchpad(), prop_kind::forward_training, how, of_x, any,
                                             Desc(), of_y, stride_, dilation, pad_, pad_);
      std::optional<Adapted> it;
      if (number == 0)
        it = Adapted("forward", forward,
                     {{DNNL_ARG_SRC, Direction::in, of_x, of_x},
                      {DNNL_ARG_WEIGHTS, Direction::in, of_w, forward.weights_desc()},
                      {DNNL_ARG_DST, Direction::out, of_y, of_y}});
      if (number == 1) {
        const auto d = backward_pass_of<dnnl::convolution_backward_data>(forward, how, of_x, any, of_y,
                                                                         stride_, dilation, pad_, pad_);
        it = Adapted("data", d,
                     {{DNNL_ARG_DIFF_SRC, Direction::out, of_x, of_x},
                      {DNNL_ARG_WEIGHTS, Direction::in, of_w, d.weights_desc()},
                      {DNNL_ARG_DIFF_DST, Direction::in, of_y, of_y}});
      }
      if (number == 2) {
        const auto d = backward_pass_of<dnnl::convolution_backward_weights>(forward, how, of_x, any, of_y,
                                                                            stride_, dilation, pad_, pad_);
        it = Adapted("weights", d,
                     {{DNNL_ARG_SRC, Direction::in, of_x, of_x},
                      {DNNL_ARG_DIFF_WEIGHTS, Direction::out, of_w, d.diff_weights_desc()},
                      {DNNL_ARG_DIFF_DST, Direction::in, of_y, of_y}});
      }
      return [this, it = *it] {
        Workspace workspace(context, it.workspace_bytes());
        it.run(workspace, {x.raw(), w.raw(), y.raw()});
      };
    } catch (const dnnl::error&) {
      return {};
    }
  }

  Tensor x, y, w;
  Context context;

 private:
  const dnnl::memory::dims stride_, pad_;
};

// Returns the median of the seconds that each of `ways` takes, of so many turns; 0 of an empty one.
inline std::vector<double> medians(const std::vector<std::function<void()>>& ways, int turns) {
  std::vector<std::vector<double>> seconds(ways.size());
  for (int turn = -1; turn < turns; ++turn)  // once before any is measured
    for (size_t way = 0; way < ways.size(); ++way) {
      if (!ways[way]) continue;
      const auto start = std::chrono::steady_clock::now();
      ways[way]();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (turn >= 0) seconds[way].push_back(took.count());
    }
  std::vector<double> middle(ways.size());
  for (size_t way = 0; way < ways.size(); ++way) {
    std::vector<double>& all = seconds[way];
    if (all.empty()) continue;
    std::ranges::nth_element(all, all.begin() + int64_t(all.size() / 2));
    middle[way] = all[all.size() / 2];
  }
  return middle;
}

}  // namespace antichain::cpu
