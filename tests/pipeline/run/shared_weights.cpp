#include "tests/pipeline/run/shared_weights.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "layers/add.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/input.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/positions.h"
#include "layers/relu.h"
#include "layers/slice.h"
#include "layers/softmax_cross_entropy.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/model.h"

namespace antichain::test {

Graph siamese(const ModelOptions& options) {
  ModelOptions o = completed(options, {});
  if (options.image == 0) o.image = 8;
  Graph g("siamese");
  const ImageInputs in = add_image_inputs(g, o);
  std::vector<NodeId> convs, fcs, sides;
  for (const char* side : {"left", "right"}) {
    const int64_t begin = sides.size() * 4;
    const std::string name = side;
    const NodeId half = slice(g, name, in.images, {.axis = 3, .begin = begin, .end = begin + 4});
    convs.push_back(conv2d(g, name + ".conv", half, {.out = 16, .kernel = 3, .pad = 1}));
    const NodeId x = flatten(g, name + ".flatten", relu(g, name + ".relu", convs.back()));
    fcs.push_back(linear(g, name + ".fc", x, {.out = 12}));
    sides.push_back(fcs.back());
  }
  g.share(convs[1], convs[0]);
  g.share(fcs[1], fcs[0]);
  const NodeId distance = elementwise(g, "distance", sides, {.steps = {"subtract x0 x1", "abs s0"}});
  add_loss(g, in.labels, linear(g, "fc", distance, {.out = o.classes}), o);
  return g;
}

Graph unrolled(const ModelOptions& options) {
  constexpr int64_t width = 6;
  constexpr int steps = 4;  // more of them take a planner seconds
  ModelOptions o = completed(options, {});
  if (options.image == 0) o.image = 8;
  Graph g("unrolled");
  const ImageInputs in = add_image_inputs(g, o);
  const auto formula = [&](const std::string& name, std::vector<NodeId> x, std::vector<std::string> steps) {
    return elementwise(g, name, std::move(x), {.steps = std::move(steps)});
  };
  NodeId h = -1;
  for (int t = 0; t < steps; ++t) {
    const std::string step = std::to_string(t);
    const NodeId row = slice(g, step, in.images, {.axis = 2, .begin = t, .end = t + 1});
    const NodeId input = linear(g, step + ".input", flatten(g, step + ".row", row), {.out = 3 * width});
    const auto gate = [&](NodeId x, std::string_view name, int part) {
      return slice(g, fmt::format("{}.{}", g[x].name, name), x,
                   {.begin = part * width, .end = (part + 1) * width});
    };
    if (t > 0) g.share(input, g.find("0.input"));
    if (t == 0) {
      h = formula("0.h", {gate(input, "new", 2)}, {"tanh x0"});
      continue;
    }
    const NodeId state = linear(g, step + ".state", h, {.out = 3 * width});
    if (t > 1) g.share(state, g.find("1.state"));
    const auto opened = [&](const char* name, int part) {
      return formula(fmt::format("{}.{}", step, name), {gate(input, name, part), gate(state, name, part)},
                     {"add x0 x1", "sigmoid s0"});
    };
    const NodeId reset = opened("reset", 0), keep = opened("keep", 1);
    const NodeId fresh = formula(step + ".new", {gate(input, "new", 2), reset, gate(state, "new", 2)},
                                 {"multiply x1 x2", "add x0 s0", "tanh s1"});
    h = formula(step + ".h", {fresh, keep, h}, {"subtract x2 x0", "multiply x1 s0", "add x0 s1"});
  }
  add_loss(g, in.labels, linear(g, "fc", h, {.out = o.classes}), o);
  return g;
}

Graph repeated(const ModelOptions& options) {
  ModelOptions o = completed(options, {});
  if (options.image == 0) o.image = 8;
  Graph g("repeated");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = conv2d(g, "stem", in.images, {.out = 16, .kernel = 3, .pad = 1}), before = -1;
  for (const std::string step : {"0", "1", "2"}) {
    const NodeId conv = conv2d(g, step + ".conv", x, {.out = 16, .kernel = 3, .pad = 1});
    if (before >= 0) g.share(conv, before);
    x = relu(g, step + ".relu", add(g, step + ".add", conv, x));
    before = conv;
  }
  x = linear(g, "narrow", flatten(g, "flatten", x), {.out = 24});
  const NodeId first = linear(g, "0.fc", relu(g, "narrow.relu", x), {.out = 24});
  const NodeId second = linear(g, "1.fc", relu(g, "0.fc.relu", first), {.out = 24});
  g.share("1.fc.weight", "0.fc.weight");
  add_loss(g, in.labels, linear(g, "fc", second, {.out = o.classes}), o);
  return g;
}

Graph tied(const ModelOptions& options) {
  constexpr int64_t length = 6, rows = 10, width = 16;
  Graph g("tied");
  const auto tokens = [&](const char* name) {
    return g.add(name, std::make_shared<Input>(TensorSpec{{options.microbatch, length}, DType::i32}), {});
  };
  const NodeId in = tokens("tokens"), labels = tokens("labels");
  const NodeId wte =
      embedding(g, "wte", in, {.rows = rows, .width = width, .weight_init = Initialiser::normal(0.3)});
  const NodeId x = add_positions(g, "wpe", wte, {.rows = 8, .weight_init = Initialiser::normal(0.3)});
  const NodeId fc = linear(g, "fc", rms_norm(g, "norm", x), {.out = 24, .in_first = true});
  const NodeId gate = elementwise(g, "gate", {fc}, {.steps = {"sigmoid x0", "multiply x0 s0"}});
  const NodeId y = add(g, "add", x, linear(g, "proj", gate, {.out = width}));
  const NodeId head = linear(g, "head", y, {.out = rows, .bias = false});
  g.share("head.weight", "wte.weight");
  softmax_cross_entropy(g, "loss", head, labels, {.ignore_index = -100, .classes_last = true});
  return g;
}

Graph small_gpt(const ModelOptions& options) {
  const ModelOptions o{.microbatch = options.microbatch, .sequence = 8, .vocabulary = 10, .dropout = 0.1};
  return gpt_network("small_gpt", {.layers = 2, .heads = 2, .width = 16}, o);
}

Graph small_llama(const ModelOptions& options) {
  const ModelOptions o{.microbatch = options.microbatch, .sequence = 8, .vocabulary = 10, .dropout = 0};
  const LlamaTable table{.layers = 4, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 24};
  return llama_network("small_llama", table, o);
}

}  // namespace antichain::test
