#include "models/vit.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "framework/error.h"
#include "layers/activate.h"
#include "layers/add.h"
#include "layers/attention.h"
#include "layers/class_token.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/permute.h"
#include "layers/reshape.h"
#include "layers/slice.h"

namespace antichain {
namespace {

const Initialiser vit_zero = Initialiser::constant(0);

// Glorot & Bengio, "Understanding the Difficulty of Training Deep Feedforward Neural Networks", AISTATS 2010.
Initialiser xavier(int64_t in, int64_t out) {
  return Initialiser::uniform(std::sqrt(6.0 / double(in + out)));
}

class VitBlocks {
 public:
  VitBlocks(Graph& g, StateDict& state, const VitTable& table, double dropout)
      : g_(g), state_(state), table_(table), dropout_(dropout) {}

  NodeId norm(std::string name, NodeId x) const { return layer_norm(g_, std::move(name), x, {.eps = 1e-6f}); }
  NodeId dropped(std::string name, NodeId x) const {
    return dropout_ > 0 ? dropout(g_, std::move(name), x, dropout_) : x;
  }

  NodeId block(const std::string& name, NodeId x) const {
    const int64_t width = table_.width;
    const std::string self = name + ".self_attention", mlp = name + ".mlp.";
    NodeId y = linear(g_, self + ".in_proj", norm(name + ".ln_1", x),
                      {.out = 3 * width, .weight_init = xavier(width, 3 * width), .bias_init = vit_zero});
    for (const char* part : {"weight", "bias"})
      state_.names[self + ".in_proj." + part] = self + ".in_proj_" + part;
    y = attention(g_, self, y, {.heads = table_.heads});
    y = linear(g_, self + ".out_proj", y, {.out = width, .bias_init = vit_zero});
    x = add(g_, name + ".add", dropped(name + ".dropout", y), x);
    y = dense(mlp + "0", norm(name + ".ln_2", x), 4 * width);
    y = dense(mlp + "3", dropped(mlp + "2", gelu(g_, mlp + "1", y)), width);
    return add(g_, mlp + "add", x, dropped(mlp + "4", y));
  }

 private:
  NodeId dense(std::string name, NodeId x, int64_t out) const {
    const Shape shape = g_.shape(x);
    return linear(g_, std::move(name), x,
                  {.out = out,
                   .weight_init = xavier(shape[shape.rank() - 1], out),
                   .bias_init = Initialiser::normal(1e-6)});
  }

  Graph& g_;
  StateDict& state_;
  const VitTable& table_;
  const double dropout_;
};

// N x 3 x H x W to N x (H / patch · W / patch) x width.
NodeId patches(Graph& g, NodeId images, int64_t width, int patch) {
  const NodeId planes =
      conv2d(g, "conv_proj", images,
             {.out = width,
              .kernel = patch,
              .stride = patch,
              .weight_init = Initialiser::normal(std::sqrt(1.0 / double(3 * patch * patch))),
              .bias_init = vit_zero});
  const NodeId rows = reshape(g, "patches.rows", planes, {width, -1});
  return permute(g, "patches", rows, {0, 2, 1});
}

}  // namespace

Graph vit_network(std::string name, const VitTable& table, int patch, const ModelOptions& o) {
  if (o.image % patch != 0)
    throw Error(
        fmt::format("images of {0} x {0} pixels can't be cut into patches of {1} x {1}", o.image, patch),
        "choose a multiple with --image", ExitCode::usage);
  const auto state = std::make_shared<StateDict>();
  Graph g(std::move(name), Precision::float32, state);
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = class_token(g, "class_token", patches(g, in.images, table.width, patch));
  const Shape tokens = g.shape(x);
  x = elementwise(g, "encoder.pos_embedding", {x},
                  {.steps = {"add x0 p"},
                   .parameter = Shape{1, tokens[1], tokens[2]},
                   .parameter_init = Initialiser::normal(0.02)});
  const VitBlocks blocks(g, *state, table, *o.dropout);
  x = blocks.dropped("encoder.dropout", x);
  for (int i = 0; i < table.layers; ++i)
    x = blocks.block(fmt::format("encoder.layers.encoder_layer_{}", i), x);
  x = slice(g, "class", blocks.norm("encoder.ln", x), {.axis = 1, .begin = 0, .end = 1});
  x = reshape(g, "flatten", x, {table.width});
  x = linear(g, "heads.head", x, {.out = o.classes, .weight_init = vit_zero, .bias_init = vit_zero});
  add_loss(g, in.labels, x, o);
  return g;
}

namespace {

Graph vit(std::string name, const VitTable& table, const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_vit);
  return vit_network(std::move(name), table, o.form == Form::imagenet ? 16 : 4, o);
}

}  // namespace

Graph vit_b_16(const ModelOptions& options) { return vit("vit_b_16", {}, options); }

Graph vit_tiny(const ModelOptions& options) { return vit("vit_tiny", {.heads = 3, .width = 192}, options); }

}  // namespace antichain
