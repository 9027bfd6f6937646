// What the operator harness does not see: how the engine's layouts flow through a graph, and that bits depend on
// neither the calling thread nor what a thread ran before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "framework/backend.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/input.h"
#include "layers/linear.h"
#include "layers/relu.h"

namespace antichain {
namespace {

const Backend& engine() {
  register_cpu_backend();
  return backend("cpu");
}

// conv → bn → relu → conv → bn → (+) → relu → pool → flatten → linear, as ResNets are made of.
Graph residual(int64_t channels) {
  Graph g("residual");
  NodeId x = input_images(g, "images", {2, 3, 8, 8});
  x = conv2d(g, "stem", x, {.out = channels, .pad = 1});
  NodeId y = relu(g, "relu1", batch_norm(g, "bn1", conv2d(g, "conv1", x, {.out = channels, .pad = 1})));
  y = batch_norm(g, "bn2", conv2d(g, "conv2", y, {.out = channels, .pad = 1}));
  y = relu(g, "relu2", add(g, "add", y, x));
  linear(g, "fc", flatten(g, "flatten", global_average_pool(g, "pool", y)), {.out = 10});
  return g;
}

int reorders(const Graph& graph) {
  return int(std::ranges::count_if(graph, [](const Node& node) { return node.op->type() == "reorder"; }));
}

TEST(Engine, BlockedTensorsFlowWithoutReorders) {
  const Graph lowered = lower(residual(32), engine());
  EXPECT_EQ(reorders(lowered), 0);
  for (const char* name : {"stem", "conv1", "bn1", "relu1", "conv2", "bn2", "add", "relu2", "pool"})
    EXPECT_EQ(lowered[lowered.find(name)].output().layout, cpu::blocked()) << name;
  EXPECT_EQ(lowered[lowered.find("flatten")].output().layout, Layout::plain);
}

// A width that is no multiple of the block flattens only after one reorder.
TEST(Engine, AnUnevenWidthCostsOneReorder) { EXPECT_EQ(reorders(lower(residual(20), engine())), 1); }

TEST(Engine, LoweringIsTheSameOnEveryCall) {
  EXPECT_EQ(lower(residual(32), engine()).hash(), lower(residual(32), engine()).hash());
}

// One node's forward on the calling thread, from fixed inputs.
std::vector<float> forward(const Graph& lowered, NodeId id) {
  Context context(engine());
  engine().enter(context);
  const Node& node = lowered[id];
  std::vector<TensorSpec> specs;
  std::vector<Tensor> x, params, buffers, statistics, stash;
  const auto filled = [](const TensorSpec& spec, std::string_view name) {
    const Tensor plain = Tensor::host({spec.shape, spec.dtype}), value = Tensor::host(spec);
    initialise(plain, Initialiser::normal(1), 3, name);
    relayout(plain, value);
    return value;
  };
  for (NodeId input : node.inputs) {
    specs.push_back(lowered[input].output());
    x.push_back(filled(specs.back(), lowered[input].name));
  }
  for (size_t i = 0; i < node.signature.params.size(); ++i)
    params.push_back(filled({node.signature.params[i].shape, DType::f32, node.lowering.params[i]}, "w"));
  const Tensor y = engine().tensor(node.output());
  engine()
      .entry(node.op->type())
      .make(*node.op, specs, node.lowering)
      ->forward(
          context,
          {.x = x, .params = params, .buffers = buffers, .y = y, .stash = stash, .statistics = statistics});
  return {y.data<float>(), y.data<float>() + y.elements()};
}

TEST(Engine, BitsDoNotDependOnTheThread) {
  const Graph lowered = lower(residual(32), engine());
  for (const char* name : {"stem", "conv1", "fc"}) {
    const NodeId id = lowered.find(name);
    const std::vector<float> here = forward(lowered, id);
    std::vector<float> there;
    std::thread([&] {
      forward(lowered, lowered.find("conv2"));  // leaves its traces in the thread's workspace and pools
      there = forward(lowered, id);
    }).join();
    ASSERT_EQ(here.size(), there.size());
    EXPECT_EQ(std::memcmp(here.data(), there.data(), here.size() * sizeof(float)), 0) << name;
  }
}

}  // namespace
}  // namespace antichain
