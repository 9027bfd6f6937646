// Tests what the operator harness does not see: how the engine's layouts flow through a graph, and that bits
// depend neither on the calling thread nor on what a thread ran before.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "framework/backend.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/cpu/dnnl.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/input.h"
#include "layers/linear.h"
#include "layers/relu.h"
#include "tests/cpu_engine.h"
#include "tests/layers/cuda_on_host/backend.h"

namespace antichain {
namespace {

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
  const Graph lowered = lower(residual(32), cpu_engine());
  EXPECT_EQ(reorders(lowered), 0);
  for (const char* name : {"stem", "conv1", "bn1", "relu1", "conv2", "bn2", "add", "relu2", "pool"})
    EXPECT_EQ(lowered[lowered.find(name)].output().layout, cpu::blocked()) << name;
  EXPECT_EQ(lowered[lowered.find("flatten")].output().layout, Layout::plain);
}

// The residual block has four nodes left: two convolutions, a batch norm with its ReLU, one with add and
// ReLU.
TEST(Engine, BatchNormTakesAddAndReluInOneGo) {
  const Graph lowered = lower(residual(32), cpu_engine());
  const Node &bn1 = lowered[lowered.find("relu1")], &bn2 = lowered[lowered.find("relu2")];
  EXPECT_EQ(bn1.name, "bn1");
  EXPECT_EQ(bn1.op->str(), "batch_norm(eps 1e-05, momentum 0.1, relu)");
  EXPECT_EQ(bn2.name, "bn2");
  EXPECT_EQ(bn2.absorbed, (std::vector<std::string>{"add", "relu2"}));
  EXPECT_EQ(bn2.inputs, (std::vector<NodeId>{lowered.find("conv2"), lowered.find("stem")}));
  EXPECT_EQ(lowered.size(), residual(32).size() - 3);
  double flops = 0, fused_flops = 0;
  for (const Node& node : residual(32)) flops += node.signature.forward_flops;
  for (const Node& node : lowered) fused_flops += node.signature.forward_flops;
  EXPECT_EQ(fused_flops, flops);
}

// The CUDA engine has a pass of its own for bias and ReLU; oneDNN's ReLU would hide a NaN, so the CPU's stays
// apart.
TEST(Engine, OfCudaTakesReluIntoConvolutionsAndLinearLayers) {
  Graph g("plain");
  NodeId x = input_images(g, "images", {2, 3, 8, 8});
  x = relu(g, "relu1", conv2d(g, "conv1", x, {.out = 16}));
  const NodeId shared = conv2d(g, "conv2", x, {.out = 16, .kernel = 1});
  x = add(g, "add", relu(g, "relu2", shared), shared);
  x = flatten(g, "flatten", x);
  linear(g, "fc2", relu(g, "relu3", linear(g, "fc1", x, {.out = 12})), {.out = 10});
  register_cuda_on_host();
  const Graph lowered = lower(g, backend("cuda_on_host"));
  const Node &conv1 = lowered[lowered.find("relu1")], &fc1 = lowered[lowered.find("relu3")];
  EXPECT_EQ(conv1.name, "conv1");
  EXPECT_EQ(conv1.op->str(), "conv2d(16, kernel 3, stride 1, pad 0, groups 1, bias, relu)");
  EXPECT_EQ(conv1.absorbed, std::vector<std::string>{"relu1"});
  EXPECT_TRUE(conv1.lowering.keeps_y);
  EXPECT_EQ(fc1.name, "fc1");
  EXPECT_EQ(fc1.op->str(), "linear(12, bias, relu)");
  EXPECT_EQ(lowered[lowered.find("relu2")].name, "relu2") << "what others read as well stays as it is";
  EXPECT_FALSE(lowered[lowered.find("conv2")].lowering.keeps_y);
  const Graph on_cpu = lower(g, cpu_engine());
  EXPECT_EQ(on_cpu[on_cpu.find("relu1")].name, "relu1");
}

// A width that is no multiple of the block flattens only after one reorder.
TEST(Engine, AnUnevenWidthCostsOneReorder) { EXPECT_EQ(reorders(lower(residual(20), cpu_engine())), 1); }

TEST(Engine, LoweringIsTheSameOnEveryCall) {
  EXPECT_EQ(lower(residual(32), cpu_engine()).hash(), lower(residual(32), cpu_engine()).hash());
}

// Computes one node's forward on the calling thread, from fixed inputs.
std::vector<float> forward(const Graph& lowered, NodeId id) {
  Context context(cpu_engine());
  cpu_engine().enter(context);
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
  const Tensor y = cpu_engine().tensor(node.output());
  cpu_engine()
      .entry(node.op->type())
      .make(*node.op, specs, node.lowering)
      ->forward(
          context,
          {.x = x, .params = params, .buffers = buffers, .y = y, .stash = stash, .statistics = statistics});
  return {y.data<float>(), y.data<float>() + y.elements()};
}

TEST(Engine, BitsDoNotDependOnTheThread) {
  const Graph lowered = lower(residual(32), cpu_engine());
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

// A mask of padded tokens is computed from the tokens that an embedding reads.
TEST(Engine, NodesThatComputeWithTokensGetThemAsNumbers) {
  register_cuda_on_host();
  const Backend* const engines[] = {&cpu_engine(), &backend("cuda_on_host")};
  for (const Backend* engine : engines) {
    Graph graph("masked");
    const auto input = std::make_shared<Input>(TensorSpec{.shape = {2, 3}, .dtype = DType::i32});
    const NodeId tokens = graph.add("tokens", input, {});
    embedding(graph, "words", tokens, {.rows = 5, .width = 4});
    elementwise(graph, "there", {tokens}, {.steps = {"greater x0 0"}});
    const Graph lowered = lower(graph, *engine);
    EXPECT_EQ(lowered[lowered.find("words")].inputs, std::vector<NodeId>{tokens});
    const Node& numbers = lowered[lowered[lowered.find("there")].inputs[0]];
    ASSERT_EQ(numbers.name, "tokens.f32");
    const TensorSpec ids = lowered[tokens].output();
    const Tensor x = Tensor::host(ids), y = Tensor::host(numbers.output());
    std::ranges::copy(std::array{7, -1, 0, 16'777'216, 3, 4}, x.data<int32_t>());
    Context context(*engine);
    engine->entry("reorder")
        .make(*numbers.op, {&ids, 1}, numbers.lowering)
        ->forward(context, {.x = {&x, 1}, .y = y});
    EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 6),
              (std::vector<float>{7, -1, 0, 16'777'216, 3, 4}));
    EXPECT_THROW(lower(graph, *engine, Precision::bf16), Error);  // which has not all of them
  }
}

}  // namespace
}  // namespace antichain
