// Convolution uses oneDNN, and our own Winograd (layers/cpu/winograd.h) in each pass where that is faster.
// Some convolutions have kernels of their own: narrow groups, depthwise ones, and bf16 with AMX. Activations
// are blocked by channels (images of up to 4 channels are read plain). Weights live in the format of oneDNN's
// float32 forward pass, which Winograd reads in all three passes.
//
// In bf16 oneDNN's forward pass and input gradient each want weights in a format of their own: they are
// prepared once a step. Products are summed in float32, and weight gradients stay float32.
//
// The algorithm of each pass is a function of shape and instruction set only, never of timing (promise 1).
#include <omp.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "layers/conv2d.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/adapted.h"
#include "layers/cpu/amx_convolution.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/depthwise.h"
#include "layers/cpu/dnnl_versions.h"
#include "layers/cpu/narrow_groups.h"
#include "layers/cpu/sum_pixels.h"
#include "layers/cpu/winograd.h"

namespace antichain::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Dims = dnnl::memory::dims;
using ForwardDesc = dnnl::convolution_forward::primitive_desc;
using BackwardDataDesc = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeightsDesc = dnnl::convolution_backward_weights::primitive_desc;

constexpr int64_t plain_channels = 4;  // images: oneDNN reads them as they are

struct Geometry {
  Geometry(const Conv2d& op, const Shape& input, Precision computed)
      : o(op.options),
        precision(computed),
        x(input),
        y(op.infer({&input, 1}).y.shape),
        weight(op.filters(input)) {}

  int64_t block() const { return has_avx512() ? 16 : 8; }
  bool image() const { return x[1] <= plain_channels; }
  Layout x_layout() const { return image() ? Layout::plain : blocked(); }
  // Returns whether filters lie in blocks, of which those of a group come one after the other.
  bool blocks_of_weights() const {
    if (o.groups > 1) return !tiles() && Winograd::whole_groups(o.groups, x, y);
    return !image();
  }
  Layout weight_layout() const {
    if (!blocks_of_weights()) return Layout::plain;
    return has_avx512() ? Layout::OIhw16i16o : Layout::OIhw8i8o;
  }
  // Returns whether AMX multiplies.
  bool tiles() const { return precision == Precision::bf16 && has_amx(); }
  // Returns whether groups have channels that do not fill blocks.
  bool ragged_groups() const {
    const int64_t in = x[1] / o.groups, out = y[1] / o.groups;
    return o.groups > 1 && !(in == 1 && out == 1) && (in % block() || out % block());
  }
  // Returns whether oneDNN picks the formats of images, which we then reorder to and from. It has AMX for
  // channels that lie together only, ten times as fast as its code for blocks.
  bool reordered() const { return ragged_groups() || no_code_for_ours || tiles(); }

  DType dtype() const { return storage(precision); }
  Desc x_have() const { return describe(x, x_layout(), dtype()); }
  Desc y_have() const { return describe(y, blocked(), dtype()); }
  Desc w_have() const {
    if (o.groups == 1) return describe(weight, weight_layout());
    if (!blocks_of_weights()) return describe_plain(w_dims());
    using Tag = dnnl::memory::format_tag;
    return Desc(w_dims(), type_of(DType::f32), has_avx512() ? Tag::gOIhw16i16o : Tag::gOIhw8i8o);
  }
  Desc x_want() const { return reordered() ? any({x.begin(), x.end()}, dtype()) : x_have(); }
  Desc y_want() const { return reordered() ? any({y.begin(), y.end()}, dtype()) : y_have(); }
  Desc w_want() const { return any(w_dims(), dtype()); }
  Desc dw_want() const { return any(w_dims(), DType::f32); }
  Desc bias() const { return o.bias ? describe_plain({o.out}) : Desc(); }

  Dims w_dims() const {
    if (o.groups == 1) return {weight.begin(), weight.end()};
    return {o.groups, weight[0] / o.groups, weight[1], weight[2], weight[3]};
  }
  Dims stride() const { return {o.stride.h, o.stride.w}; }
  Dims pad_before() const { return {o.pad.before.h, o.pad.before.w}; }
  Dims pad_after() const { return {o.pad.after.h, o.pad.after.w}; }
  Dims dilation() const { return {o.dilation.h - 1, o.dilation.w - 1}; }  // oneDNN counts the pixels between
  static Desc any(const Dims& dims, DType dtype) {
    return Desc(dims, type_of(dtype), dnnl::memory::format_tag::any);
  }

  const Conv2dOptions o;
  const Precision precision;
  const Shape x, y, weight;
  bool no_code_for_ours = false;
};

// Returns a pass in our layouts. Where oneDNN has only its reference code for these, which is far slower, it
// returns one in oneDNN's (2.6.3 on AVX2: weight gradients of images of 2 x 2 pixels).
template <class Describe>
auto with_code(const Geometry& g, const Describe& describe) {
  auto ours = describe(g);
  if (!std::string_view(ours.impl_info_str()).starts_with("ref")) return ours;
  Geometry theirs = g;
  theirs.no_code_for_ours = true;
  return describe(theirs);
}

bool winograd_pays(const Geometry& g, Winograd::Pass pass) {
  return !g.tiles() && Winograd::pays(g.o, g.x, g.y, g.precision, pass);
}

ForwardDesc forward_desc(const Geometry& g, const Desc& x) {
  return checked("describe a convolution", [&] {
    return pass_of<dnnl::convolution_forward>(
        user_scratchpad(), prop_kind::forward_training, algorithm::convolution_direct, x, g.w_want(),
        g.bias(), g.y_want(), g.stride(), g.dilation(), g.pad_before(), g.pad_after());
  });
}

ForwardDesc forward_desc(const Geometry& geometry) {
  return with_code(geometry, [](const Geometry& g) { return forward_desc(g, g.x_want()); });
}

// The input gradient of plain images is computed blocked: oneDNN has only reference code for it plain.
BackwardDataDesc backward_data_desc(const Geometry& g) {
  const Desc x = g.image() ? describe(g.x, blocked(), g.dtype()) : g.x_want();
  return checked("describe a convolution's input gradient", [&] {
    return backward_pass_of<dnnl::convolution_backward_data>(
        forward_desc(g, x), algorithm::convolution_direct, x, g.w_want(), g.y_want(), g.stride(),
        g.dilation(), g.pad_before(), g.pad_after());
  });
}

BackwardWeightsDesc backward_weights_desc(const Geometry& g) {
  return checked("describe a convolution's weight gradient", [&] {
    return backward_pass_of<dnnl::convolution_backward_weights>(
        forward_desc(g, g.x_want()), algorithm::convolution_direct, g.x_want(), g.dw_want(), g.y_want(),
        g.stride(), g.dilation(), g.pad_before(), g.pad_after());
  });
}

// Returns the weights that the passes read: float32 weights as they are stored, others as they were prepared
// for the pass.
Desc weights_at_hand(const Geometry& g, const Desc& wanted) {
  return g.precision == Precision::float32 ? g.w_have() : wanted;
}

Adapted forward_pass(const Geometry& g) {
  const ForwardDesc d = forward_desc(g);
  const Desc weights = weights_at_hand(g, d.weights_desc());
  std::vector<Slot> slots = {{DNNL_ARG_SRC, Direction::in, g.x_have(), d.src_desc()},
                             {DNNL_ARG_WEIGHTS, Direction::in, weights, d.weights_desc()},
                             {DNNL_ARG_DST, Direction::out, g.y_have(), d.dst_desc()}};
  if (g.o.bias) slots.push_back({DNNL_ARG_BIAS, Direction::in, g.bias(), g.bias()});
  return {"create a convolution", d, slots};
}

Adapted backward_data_pass(const Geometry& g) {
  const BackwardDataDesc d = with_code(g, backward_data_desc);
  const Desc weights = weights_at_hand(g, d.weights_desc());
  return {"create a convolution's input gradient",
          d,
          {{DNNL_ARG_DIFF_SRC, Direction::out, g.x_have(), d.diff_src_desc()},
           {DNNL_ARG_WEIGHTS, Direction::in, weights, d.weights_desc()},
           {DNNL_ARG_DIFF_DST, Direction::in, g.y_have(), d.diff_dst_desc()}}};
}

// This pass omits the bias, whose gradient is summed more carefully here (sum_pixels).
Adapted backward_weights_pass(const Geometry& g) {
  const BackwardWeightsDesc d = with_code(g, backward_weights_desc);
  return {"create a convolution's weight gradient",
          d,
          {{DNNL_ARG_SRC, Direction::in, g.x_have(), d.src_desc()},
           {DNNL_ARG_DIFF_WEIGHTS, Direction::out, g.w_have(), d.diff_weights_desc()},
           {DNNL_ARG_DIFF_DST, Direction::in, g.y_have(), d.diff_dst_desc()}}};
}

class Conv2dKernel : public Kernel {
 public:
  explicit Conv2dKernel(const Geometry& g)
      : has_bias_(g.o.bias),
        image_(g.image()),
        weight_bytes_(int64_t(g.w_have().get_size())),
        winograd_(g.x, g.y, g.o.pad.before, g.o.groups),
        forward_(!winograd_pays(g, Winograd::Pass::forward) ? forward_pass(g) : Adapted()),
        backward_data_(!winograd_pays(g, Winograd::Pass::data) ? backward_data_pass(g) : Adapted()),
        backward_weights_(!winograd_pays(g, Winograd::Pass::weights) ? backward_weights_pass(g) : Adapted()) {
    if (g.precision == Precision::float32) return;
    weights_ = PreparedWeights(g.w_have(), forward_ ? forward_desc(g).weights_desc() : Desc(),
                               backward_data_ ? with_code(g, backward_data_desc).weights_desc() : Desc());
  }

  // Nobody wants an image's gradient. Where a tensor within the network has as few channels, the workspace
  // grows when its gradient is computed for the first time.
  int64_t workspace_bytes(int threads) const {
    return std::max({forward_bytes(threads), image_ ? 0 : data_bytes(threads), weights_bytes(threads),
                     weights_.scratch_bytes()});
  }

  std::vector<TensorSpec> prepared() const { return weights_.specs(); }

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    weights_.run(context, params[0], prepared);
  }

  void forward(Context& context, const Forward& f) const override {
    const int threads = context.threads();
    Workspace workspace(context, forward_bytes(threads));
    const Tensor& w = weights_.forward(f.params[0], f.prepared);
    if (!forward_)
      with_type(f.y.dtype(), [&]<class T>() {
        winograd_.forward(workspace.take(forward_bytes(threads)), threads, f.x[0].data<T>(), w.data<float>(),
                          has_bias_ ? f.params[1].data<float>() : nullptr, f.y.data<T>());
      });
    else if (has_bias_)
      forward_.run(workspace, {f.x[0].raw(), w.raw(), f.y.raw(), f.params[1].raw()});
    else
      forward_.run(workspace, {f.x[0].raw(), w.raw(), f.y.raw()});
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dw.empty()) backward_weights(context, b);
    if (!b.dx.empty() && b.dx[0]) backward_data(context, b);
  }

 private:
  int64_t forward_bytes(int threads) const {
    return forward_ ? forward_.workspace_bytes() : winograd_.forward_bytes(threads);
  }
  int64_t data_bytes(int threads) const {
    return backward_data_ ? backward_data_.workspace_bytes() : winograd_.backward_data_bytes(threads);
  }
  int64_t weights_bytes(int threads) const {
    return backward_weights_ ? backward_weights_.workspace_bytes() + Workspace::rounded(weight_bytes_)
                             : winograd_.backward_weights_bytes(threads);
  }

  void backward_data(Context& context, const Backward& b) const {
    const int threads = context.threads();
    Workspace workspace(context, data_bytes(threads));
    const Tensor& w = weights_.backward(b.params[0], b.prepared);
    if (backward_data_) return backward_data_.run(workspace, {b.dx[0].raw(), w.raw(), b.dy.raw()});
    with_type(b.dy.dtype(), [&]<class T>() {
      winograd_.backward_data(workspace.take(data_bytes(threads)), threads, w.data<float>(), b.dy.data<T>(),
                              b.dx[0].data<T>());
    });
  }

  void backward_weights(Context& context, const Backward& b) const {
    const int threads = context.threads();
    if (has_bias_ && b.dw.size() > 1 && b.dw[1])
      with_type(b.dy.dtype(), [&]<class T>() {
        sum_pixels(Activation(b.dy.spec()), b.dy.data<T>(), threads, b.dw[1].data<float>(), b.into);
      });
    const Tensor& dw = b.dw[0];
    if (!dw) return;
    Workspace workspace(context, weights_bytes(threads));
    if (!backward_weights_)
      return with_type(b.dy.dtype(), [&]<class T>() {
        winograd_.backward_weights(workspace.take(weights_bytes(threads)), threads, b.x[0].data<T>(),
                                   b.dy.data<T>(), dw.data<float>(), b.into);
      });
    const bool fresh = b.into == Into::overwrite;
    std::byte* to = fresh ? dw.raw() : workspace.take(weight_bytes_);
    backward_weights_.run(workspace, {b.x[0].raw(), to, b.dy.raw()});
    if (!fresh) accumulate(reinterpret_cast<float*>(to), dw.data<float>(), weight_bytes_ / 4);
  }

  bool has_bias_, image_;
  int64_t weight_bytes_;
  Winograd winograd_;
  Adapted forward_, backward_data_, backward_weights_;  // empty where Winograd computes the pass
  PreparedWeights weights_;
};

std::optional<NarrowGroups> narrow_groups(const Op& op, const Geometry& g) {
  return NarrowGroups::of(dynamic_cast<const Conv2d&>(op), g.x, g.y, g.precision);
}

std::optional<Depthwise> depthwise(const Op& op, const Geometry& g) {
  return Depthwise::of(dynamic_cast<const Conv2d&>(op), g.x, g.y, g.precision);
}

std::optional<AmxConvolution> amx_convolution(const Op& op, const Geometry& g) {
  if (g.image()) return std::nullopt;
  return AmxConvolution::of(dynamic_cast<const Conv2d&>(op), g.x, g.y, g.precision);
}

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
  const Geometry g(dynamic_cast<const Conv2d&>(op), x[0], precision);
  ANTICHAIN_CHECK(!g.o.relu, "the cpu engine fuses no ReLU into a convolution");
  Lowering l;
  l.x = {g.x_layout()};
  l.y = blocked();
  l.params = {g.weight_layout()};
  if (g.o.bias) l.params.push_back(Layout::plain);
  l.precision = precision;
  l.keeps_x = true;
  if (const auto amx = amx_convolution(op, g)) {
    l.prepared = amx->prepared();
    l.workspace_bytes = amx->workspace_bytes(omp_get_max_threads());
  } else if (const auto narrow = narrow_groups(op, g)) {
    l.workspace_bytes = narrow->workspace_bytes(omp_get_max_threads());
  } else if (const auto own = depthwise(op, g)) {
    l.x = {blocked()};  // also of few channels
    l.prepared = own->prepared();
    l.workspace_bytes = own->workspace_bytes(omp_get_max_threads());
  } else {
    const Conv2dKernel kernel(g);
    l.prepared = kernel.prepared();
    l.workspace_bytes = kernel.workspace_bytes(omp_get_max_threads());
  }
  return l;
}

std::unique_ptr<Kernel> make(const Op& op, std::span<const TensorSpec> x, const Lowering& lowering) {
  const Geometry g(dynamic_cast<const Conv2d&>(op), x[0].shape, lowering.precision);
  if (const auto amx = amx_convolution(op, g)) return std::make_unique<AmxConvolution>(*amx);
  if (const auto narrow = narrow_groups(op, g)) return std::make_unique<NarrowGroups>(*narrow);
  if (const auto own = depthwise(op, g)) return std::make_unique<Depthwise>(*own);
  return std::make_unique<Conv2dKernel>(g);
}

}  // namespace

KernelEntry conv2d_entry() { return {.lower = lower, .make = make}; }

}  // namespace antichain::cpu
