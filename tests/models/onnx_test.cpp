// Tests ONNX files: what PyTorch's exporters wrote computes PyTorch's logits, networks survive writing and
// reading, and what can't be translated is refused by a sentence that names the node.
// tests/python/onnx_test.py has onnxruntime run what we write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "framework/files/state_dict.h"
#include "framework/json.h"
#include "layers/layers.h"
#include "models/model.h"
#include "models/onnx/messages.h"
#include "models/onnx/onnx_file.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/models/graph_run.h"

namespace antichain {
namespace {

std::vector<double> logits_of(const Graph& graph, const Weights& weights, const std::vector<float>& images) {
  const Start start = [&](const Tensor& to, std::string_view name) {
    if (const NamedTensor* tensor = weights.find(name))
      from_named(*tensor, to, "the test");
    else
      std::copy_n(images.begin(), to.elements(), to.data<float>());
  };
  return run_graph(graph, cpu_engine(), start).logits;
}

void expect_near(const std::vector<double>& a, const auto& b, double most) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const auto v : b) largest = std::max(largest, std::abs(double(v)));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], double(b[i]), most * largest) << i;
}

TEST(Onnx, WhatPyTorchWroteComputesItsLogits) {
  const std::string folder = ANTICHAIN_GOLDEN "/onnx/";
  const Weights recorded = read_weights(folder + "logits.safetensors"),
                state = read_weights(folder + "state.safetensors");
  const auto values = [&](const char* name) {
    return std::get<std::vector<float>>(recorded.find(name)->values);
  };
  for (const int opset : {11, 17, 21}) {
    SCOPED_TRACE(opset);
    const OnnxNetwork network = read_onnx(fmt::format("{}opset{}.onnx", folder, opset));
    EXPECT_EQ(network.graph.model(), fmt::format("opset{}", opset));
    EXPECT_EQ(network.graph.classes(), 5);
    // Sums of a hundred products round to some 1e-6 of the largest logit.
    expect_near(logits_of(network.graph.graph({.microbatch = 3}), network.weights, values("images")),
                values("logits"), 1e-5);
    for (const char* name : {"layer_scale", "norm2.bias", "mix.weight", "tokens.bias", "fc.weight"}) {
      const NamedTensor* weight = network.weights.find(name);
      ASSERT_NE(weight, nullptr) << name << " has lost its name";
      EXPECT_EQ(weight->values, state.find(name)->values) << name;
    }
  }
}

OnnxNetwork again(const Graph& graph, const Weights& weights) {
  return network_of_onnx(to_onnx(graph, weights, "a test"), "again.onnx", graph.model());
}

TEST(Onnx, ShippedModelsKeepTheirWeightsAndTheirNames) {
  for (const char* name : {"resnet20", "resnet50", "vgg11", "squeezenet1_1", "densenet121",
                           "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "inception_v3"}) {
    SCOPED_TRACE(name);
    const auto names = model_names();
    if (std::ranges::find(names, name) == names.end()) continue;
    const Graph graph = make_model(name, {.microbatch = 2});
    const Weights weights = initial_weights(graph, 3);
    const OnnxNetwork network = again(graph, weights);
    ASSERT_EQ(network.weights.size(), weights.size());
    for (const NamedTensor& tensor : weights) {
      const NamedTensor* read = network.weights.find(tensor.name);
      ASSERT_NE(read, nullptr) << tensor.name;
      EXPECT_EQ(read->values, tensor.values) << tensor.name;
    }
  }
  const Graph graph = make_model("resnet20", {.microbatch = 2});
  const Graph read = again(graph, initial_weights(graph, 3)).graph.graph({.microbatch = 2});
  ASSERT_EQ(read.size(), graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeId same = read.find(graph[id].name);
    ASSERT_GE(same, 0) << graph[id].name;
    EXPECT_EQ(read[same].op->type(), graph[id].op->type()) << graph[id].name;
    EXPECT_EQ(read.shape(same), graph.shape(id)) << graph[id].name;
  }
}

TEST(Onnx, EveryOperatorSurvivesARoundTrip) {
  Graph g("everything");
  NodeId x = input_images(g, "images", {2, 3, 16, 12});
  const NodeId labels = input_labels(g, "labels", 2);
  x = conv2d(g, "conv", x,
             {.out = 8,
              .kernel = {3, 5},
              .stride = {1, 2},
              .pad = {Extent(1, 2), Extent(0, 3)},
              .dilation = {1, 2}});
  for (const auto function : {gelu(g, "gelu", x), gelu(g, "gelu_tanh", x, Gelu::tanh), hardswish(g, "hs", x),
                              hardsigmoid(g, "h", x), relu6(g, "r6", x), sigmoid(g, "sig", x),
                              silu(g, "silu", x), relu(g, "relu", x), softmax(g, "soft", x)})
    x = add(g, fmt::format("sum{}", g.size()), x, function);
  x = multiply(g, "gate", x, global_average_pool(g, "global", x));
  x = group_norm(g, "gn", x, {.groups = 4, .eps = 1e-3f});
  x = group_norm(g, "gn2", x, {.groups = 2, .affine = false});
  x = layer_norm(g, "ln", x, {.channels = true, .eps = 1e-6f, .bias = false});
  x = layer_norm(g, "ln2", x, {.over = {g.shape(x)[2], g.shape(x)[3]}});
  x = layer_norm(g, "ln3", x, {.affine = false});
  x = layer_scale(g, "scale", x, {.init = 0.1});
  x = conv_transpose2d(g, "up", x,
                       {.out = 4, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1, .groups = 2});
  x = max_pool(g, "max", x, {.kernel = 3, .stride = {2, 1}, .pad = {1, 0}, .ceil_mode = true});
  x = average_pool(g, "mean_pool", x, {.kernel = 3, .stride = 1, .pad = 1, .count_include_pad = false});
  x = interpolate(g, "larger", x,
                  {.mode = Interpolation::bilinear, .size = Extent(18, 7), .align_corners = true});
  x = interpolate(g, "other", x, {.mode = Interpolation::bilinear, .scale = Scale(0.5, 1.5)});
  x = interpolate(g, "twice", x, {.scale = Scale(2, 2)});
  x = concat(g, "cat", {x, slice(g, "part", x, {.axis = 1, .begin = 1, .end = -1, .step = 2})});
  x = adaptive_average_pool(g, "adaptive", x, {9, 5});
  x = adaptive_average_pool(g, "uneven", x, {7, 4});
  x = adaptive_average_pool(g, "repeated", x, {8, 9});
  x = conv2d(g, "matrix", x, {.out = 6, .kernel = 1, .bias = false, .matrix = true});
  x = permute(g, "permute", x, {0, 2, 3, 1});
  x = mean(g, "mean", x, {1}, true);
  x = reshape(g, "grow", x, {-1, 3, 1});
  x = mean(g, "mean2", x, {3});
  x = reshape(g, "flat", x, {-1});
  x = linear(g, "fc", x, {.out = 5, .bias = false});
  softmax_cross_entropy(g, "loss", x, labels);

  const Weights weights = initial_weights(g, 5);
  std::vector<float> images(2 * 3 * 16 * 12);
  for (size_t i = 0; i < images.size(); ++i) images[i] = float(std::sin(double(i)));
  const OnnxNetwork network = again(g, weights);
  // Sums have another order: GroupNorm is over a reshaped tensor, and LayerNorms over permuted ones.
  expect_near(logits_of(network.graph.graph({.microbatch = 2}), network.weights, images),
              logits_of(g, weights, images), 1e-5);
}

// Windows of different sizes are two products with matrices of means, which other products are not.
TEST(Onnx, OnlyProductsWithMatricesOfMeansAreAdaptivePools) {
  Graph g("uneven");
  const NodeId images = input_images(g, "images", {2, 3, 5, 7});
  const NodeId labels = input_labels(g, "labels", 2);
  const NodeId x = adaptive_average_pool(g, "pool", images, {3, 4});
  softmax_cross_entropy(g, "loss", linear(g, "fc", flatten(g, "flat", x), {.out = 2}), labels);
  const std::string bytes = to_onnx(g, initial_weights(g, 1), "the test");
  const Graph read = network_of_onnx(bytes, "uneven.onnx", "uneven").graph.graph({.microbatch = 2});
  ASSERT_GE(read.find("pool"), 0);
  EXPECT_EQ(read[read.find("pool")].op->type(), "adaptive_average_pool");

  onnx::Model larger = onnx::parse(bytes, "uneven.onnx");
  larger.graph.inputs[0].dims[2] = 6;
  expect_error([&] { network_of_onnx(onnx::serialise(larger), "uneven.onnx", "uneven"); },
               {"two products with matrices that are of another size than the image at node 'pool'"});

  onnx::Model other = onnx::parse(bytes, "uneven.onnx");
  onnx::Tensor& rows = other.graph.initializers[1];
  std::string numbers(rows.raw);
  numbers[3] ^= 0x40;
  rows.raw = numbers;
  expect_error([&] { network_of_onnx(onnx::serialise(other), "uneven.onnx", "uneven"); },
               {"'MatMul' with a second factor that is no float32 constant at node 'pool'"});
}

// A reader takes attributes by their type, and 0 may be a number of either.
TEST(Onnx, AttributesOfZeroKeepTheirType) {
  Graph g("forgets");
  const NodeId images = input_images(g, "images", {2, 3, 8, 8});
  const NodeId labels = input_labels(g, "labels", 2);
  const NodeId x = batch_norm(g, "bn", images, {.momentum = 1});
  softmax_cross_entropy(g, "loss", flatten(g, "flat", global_average_pool(g, "pool", x)), labels);
  const std::string bytes = to_onnx(g, initial_weights(g, 1), "the test");
  const onnx::Model model = onnx::parse(bytes, "forgets.onnx");
  const onnx::Attribute* momentum = model.graph.nodes[0].find("momentum");
  ASSERT_NE(momentum, nullptr);
  EXPECT_EQ(momentum->real, 0);
  EXPECT_EQ(momentum->type, onnx::type_real);
}

// These are the parts of a small file, which a test changes before it is written.
struct Parts {
  onnx::Model model;
  std::vector<float> numbers = std::vector<float>(64, 0.5f);
  std::vector<int64_t> shape = {0, -1};

  Parts() {
    model.ir_version = 8;
    model.opsets = {{"", 13}};
    onnx::FileGraph& g = model.graph;
    g.inputs = {{.name = "images", .dims = {-1, 2, 4, 4}, .params = {"n", "", "", ""}}};
    g.outputs = {{.name = "y", .dims = {-1, 2}, .params = {"n", ""}}};
    g.initializers = {tensor("w", {2, 2, 4, 4})};
    g.nodes = {{.name = "first", .op = "Conv", .inputs = {"images", "w"}, .outputs = {"c"}},
               {.name = "last", .op = "Flatten", .inputs = {"c"}, .outputs = {"y"}}};
  }
  onnx::Tensor tensor(std::string name, std::vector<int64_t> dims) const {
    return {.name = std::move(name),
            .dims = std::move(dims),
            .raw = {reinterpret_cast<const char*>(numbers.data()), 256}};
  }
  onnx::Node& first() { return model.graph.nodes[0]; }
  onnx::Node& last() { return model.graph.nodes.back(); }
};

TEST(Onnx, WhatCannotBeTranslatedIsRefusedByTheNode) {
  const auto refused = [](const std::function<void(Parts&)>& change,
                          std::initializer_list<std::string> parts) {
    Parts file;
    change(file);
    SCOPED_TRACE(*parts.begin());
    expect_error([&] { network_of_onnx(onnx::serialise(file.model), "net.onnx", "net"); }, parts);
  };
  {
    Parts good;
    EXPECT_EQ(network_of_onnx(onnx::serialise(good.model), "net.onnx", "net").graph.classes(), 2);
  }
  refused([](Parts& p) { p.last().op = "Hardmax"; },
          {"net.onnx: 'Hardmax' at node 'last' is not supported", "the operators are Add, AveragePool"});
  refused([](Parts& p) { p.last().domain = "com.microsoft"; }, {"'com.microsoft.Flatten' at node 'last'"});
  refused([](Parts& p) { p.last().set("axis", int64_t(2)); },
          {"Flatten at another axis than 1 at node 'last'"});
  refused([](Parts& p) { p.first().set("auto_pad", "SIDEWAYS"); }, {"auto_pad SIDEWAYS at node 'first'"});
  refused(
      [](Parts& p) {
        p.first().set("strides", std::vector<int64_t>{1, -1});
      },
      {"strides of -1 at node 'first'"});
  refused([](Parts& p) { p.first().set("group", int64_t(3)); },
          {"'Conv' with these shapes and options", "'first'"});
  refused([](Parts& p) { p.first().inputs[1] = "images"; },
          {"'Conv' with a weight that is no float32 constant"});
  refused([](Parts& p) { p.last().inputs[0] = "nowhere"; },
          {"'Flatten' of 'nowhere', which no earlier node gives"});
  refused([](Parts& p) { std::swap(p.first(), p.last()); },
          {"'Flatten' of 'c', which no earlier node gives"});
  refused(
      [](Parts& p) {
        p.last().outputs.push_back("c");
        p.last().op = "Split";
      },
      {"at node 'last'"});
  refused([](Parts& p) { p.model.graph.outputs.clear(); }, {"net.onnx has no output"});
  refused([](Parts& p) { p.model.graph.outputs[0].name = "c"; }, {"an output of 4 axes"});
  refused([](Parts& p) { p.model.graph.inputs[0].dims[2] = -1; },
          {"the input 'images' has no fixed extent of axis 2"});
  refused([](Parts& p) { p.model.graph.inputs[0].type = onnx::type_int64; },
          {"the input 'images' is no float32"});
  refused([](Parts& p) { p.model.opsets[0].version = 9; }, {"is of opset 9", "11 to 21"});
  refused([](Parts& p) { p.model.opsets[0].version = 30; }, {"is of opset 30"});
  refused(
      [](Parts& p) {
        p.model.graph.initializers[0].dims = {2, 2, 4, 5};
      },
      {"the tensor 'w'", "256 bytes"});
  refused([](Parts& p) { p.model.graph.initializers[0].dims = {1, 1 << 30, 1 << 30, 1 << 30}; }, {"'w'"});
  refused([](Parts& p) { p.model.graph.initializers[0].type = 3; }, {"the tensor 'w' has the type 3"});
  refused([](Parts& p) { p.model.graph.initializers.push_back(p.model.graph.initializers[0]); },
          {"two initializers have the name 'w'"});
  refused(
      [](Parts& p) {  // one weight in two convolutions
        p.model.graph.initializers[0] = p.tensor("w", {2, 2, 4, 4});
        p.first().set("auto_pad", "SAME_UPPER");
        p.model.graph.nodes.insert(p.model.graph.nodes.begin() + 1,
                                   {.name = "second", .op = "Conv", .inputs = {"c", "w"}, .outputs = {"d"}});
        p.last().inputs[0] = "d";
      },
      {"the weight 'w' that another node uses, too, at node 'second'"});
}

TEST(Onnx, DamagedFilesAreRefused) {
  const std::string whole = onnx::serialise(Parts().model);
  const auto refused = [](const std::string& bytes, const std::string& part) {
    expect_error([&] { network_of_onnx(bytes, "net.onnx", "net"); }, {part});
  };
  refused("", "net.onnx is no ONNX file: it has no graph");
  refused("{\"format\": \"antichain graph\"}", "net.onnx is no ONNX file");
  refused(whole.substr(0, whole.size() / 2), "net.onnx is no ONNX file");
  refused(std::string(20, '\xff'), "a number has more than 64 bits");
  // A graph of millions of empty nodes takes two bytes for each.
  std::string nodes;
  for (int i = 0; i < 2'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  const auto length = [](size_t n) {
    std::string bytes;
    for (; n >= 0x80; n >>= 7) bytes += char(n | 0x80);
    return bytes + char(n);
  };
  refused("\x3a" + length(nodes.size()) + nodes, "too many nodes, attributes, names and integers");
  expect_error([] { read_onnx("/nowhere/net.onnx"); }, {"can't read /nowhere/net.onnx"});
}

TEST(Onnx, AHundredThousandNodesAreReadInSeconds) {
  Parts file;
  constexpr int count = 100'000;
  std::vector<onnx::Node>& nodes = file.model.graph.nodes;
  nodes[0].outputs[0] = "r0";
  const onnx::Node last = nodes[1];
  nodes.pop_back();
  for (int i = 0; i < count; ++i)
    nodes.push_back({.op = i % 2 ? "Relu" : "Sigmoid",
                     .inputs = {fmt::format("r{}", i)},
                     .outputs = {fmt::format("r{}", i + 1)}});
  nodes.push_back(last);
  nodes.back().inputs[0] = fmt::format("r{}", count);
  const std::string bytes = onnx::serialise(file.model);
  const auto begin = std::chrono::steady_clock::now();
  const OnnxNetwork network = network_of_onnx(bytes, "long.onnx", "long");
  EXPECT_EQ(network.graph.graph({.microbatch = 2}).size(), count + 5);
  // It takes about a second on one core. Time that grows with the square would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace antichain
