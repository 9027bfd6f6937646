// Tests graph.json: every shipped model and every operator survives writing and reading, every option that a
// file may have reaches the operator, and what can't be a network is refused by a sentence that helps.
#include "models/graph_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/files/state_dict.h"
#include "layers/layers.h"
#include "layers/operators.h"
#include "models/model.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

GraphFile again(const Graph& graph) { return {to_graph_json(graph, "a test"), "again.json"}; }

void expect_same_network(const Graph& graph, const ModelOptions& options) {
  const Graph read = again(graph).graph(options);
  EXPECT_EQ(read.hash(), graph.hash());
  // A hash does not cover every initial value: that of batch norm's weights is no part of an operator's text.
  for (NodeId id = 0; id < graph.size(); ++id)
    for (size_t i = 0; i < graph[id].signature.params.size(); ++i) {
      const Initialiser &a = graph[id].signature.params[i].init, &b = read[id].signature.params[i].init;
      EXPECT_TRUE(a.kind == b.kind && a.a == b.a) << graph[id].name;
    }
}

TEST(GraphFile, EveryShippedModelSurvivesARoundTrip) {
  for (const std::string& name : model_names())
    for (const Form form : {Form::cifar, Form::imagenet}) {
      SCOPED_TRACE(name);
      const ModelTraits& traits = known_model(name).traits;
      const bool has_form = form == Form::cifar || (!traits.cifar_only && traits.reads == Reads::images);
      if (!has_form || name.starts_with("own_")) continue;
      expect_same_network(make_model(name, {.form = form, .microbatch = 3}), {.microbatch = 3});
    }
  expect_same_network(make_model("inception_v3", {.microbatch = 2, .aux = 0.4}), {.microbatch = 2});
  expect_same_network(make_model("resnet20", {.microbatch = 2, .label_smoothing = 0.1f, .soft_labels = true}),
                      {.microbatch = 2, .soft_labels = true});
}

// This network has every operator, with options that are not the defaults.
struct Everything {
  Graph graph{"everything"};
  NodeId x;

  Everything() {
    Graph& g = graph;
    x = input_images(g, "images", {2, 3, 16, 12});
    const NodeId labels = input_labels(g, "labels", 2);
    const auto integers = std::make_shared<Input>(TensorSpec{{2, 3}, DType::i32});
    const NodeId tokens = g.add("tokens", integers, {}), token_labels = g.add("token_labels", integers, {});
    x = conv2d(g, "conv", x,
               {.out = 8,
                .kernel = {3, 5},
                .stride = {1, 2},
                .pad = {Extent(1, 2), Extent(0, 3)},
                .dilation = {1, 2},
                .bias = false,
                .weight_init = Initialiser::normal(0.3)});
    const auto subtract = std::make_shared<Elementwise>(ElementwiseOptions{.steps = {"subtract x0 x1"}});
    x = g.add("standardised",
              std::make_shared<Computed>(ComputedOptions{
                  .of = std::make_shared<Conv2d>(Conv2dOptions{.out = 8, .kernel = 3, .pad = 1}),
                  .parameters = {{"w", {8, 8, 3, 3}, Initialiser::normal(0.5)}},
                  .buffers = {{"mask", {8, 8, 3, 3}, Initialiser::constant(1)}},
                  .steps = {{std::make_shared<Mean>(std::vector{2, 3, 4}, true), {"w"}},
                            {subtract, {"w", "s0"}},
                            {subtract, {"s1", "mask"}},
                            {std::make_shared<SpectralNorm>(SpectralNormOptions{2, 1e-6f}), {"s2"}}},
                  .values = {{"weight", 3}}}),
              {x});
    x = conv2d(g, "line", x, {.out = 8, .kernel = {1, 3}, .pad = {0, 1}, .line = true});
    x = batch_norm(g, "bn", x,
                   {.eps = 2e-4f, .momentum = 0.3f, .first_weight = 0.5f, .fixed_statistics = true});
    x = batch_norm(g, "bn2", x, {.affine = false});
    for (const auto function :
         {gelu(g, "gelu", x), gelu(g, "gelu_tanh", x, Gelu::tanh), hardswish(g, "hs", x),
          hardsigmoid(g, "h", x), relu6(g, "r6", x), sigmoid(g, "sig", x), silu(g, "silu", x),
          relu(g, "relu", x), softmax(g, "soft", x)})
      x = add(g, fmt::format("sum{}", g.size()), x, function);
    x = multiply(g, "gate", x, global_average_pool(g, "global", x));
    x = group_norm(g, "gn", x, {.groups = 4, .eps = 1e-3f, .affine = false});
    x = layer_norm(g, "ln", x, {.channels = true, .eps = 1e-6f, .bias = false});
    x = layer_norm(g, "ln2", x, {.over = {g.shape(x)[2], g.shape(x)[3]}});
    x = rms_norm(g, "rms", x, {.eps = 1e-4f});
    x = layer_scale(g, "scale", x, {.init = 0.1});
    x = elementwise(g, "formula", {x, x},
                    {.steps = {"multiply x0 p", "leaky_relu s0 0.125", "add s1 x1"},
                     .parameter = Shape{8},
                     .parameter_axis = 1,
                     .parameter_init = Initialiser::uniform(0.5)});
    x = stochastic_depth(g, "depth", x, 0.25, Drop::batch);
    x = stochastic_depth(g, "channels", x, 0.25, Drop::channel);
    x = conv_transpose2d(g, "up", x,
                         {.out = 4,
                          .kernel = 3,
                          .stride = 2,
                          .pad = 1,
                          .output_pad = 1,
                          .groups = 2,
                          .bias_init = Initialiser::uniform(0.2)});
    x = conv_transpose2d(g, "longer", x, {.out = 4, .kernel = {1, 2}, .line = true});
    x = max_pool(g, "max", x, {.kernel = 3, .stride = {2, 1}, .pad = {1, 0}, .ceil_mode = true});
    x = average_pool(g, "mean_pool", x, {.kernel = 2, .stride = 1, .count_include_pad = false});
    x = interpolate(g, "larger", x,
                    {.mode = Interpolation::bilinear, .size = Extent(9, 7), .align_corners = true});
    x = interpolate(g, "half", x, {.scale = Scale(0.5, 1.5)});
    x = concat(g, "cat", {x, slice(g, "part", x, {.axis = 1, .begin = 1, .end = -1, .step = 2})});
    x = permute(g, "permute", x, {0, 2, 3, 1});
    x = mean(g, "mean", x, {1}, true);
    x = mean(g, "mean2", x, {1, 2});
    x = add(g, "shifted", x, constant(g, "constant", x, {.shape = {g.shape(x)[1]}, .values = {0.5f}}));
    x = reshape(g, "square", x, {-1, 1});
    x = matmul(g, "gram", x, x, {.transpose_a = true});
    x = matmul(g, "gram2", x, x, {.transpose_b = true});
    x = reshape(g, "grow", x, {-1, 1, 1});
    x = adaptive_average_pool(g, "adaptive", x, {2, 4});
    x = rotary(g, "rotary", reshape(g, "heads", x, {2, 4}), {.heads = 2, .theta = 500, .interleaved = true});
    x = attention(g, "attention", x,
                  {.heads = 2, .kv_heads = 1, .causal = true, .dropout = 0.25f, .scale = 0.5f});
    x = reshape(g, "image", x, {1, 2, 2});
    x = dropout(g, "drop", flatten(g, "flatten", x), 0.3);
    const NodeId rows =
        embedding(g, "embedding", tokens,
                  {.rows = 11, .width = 4, .padding = 3, .weight_init = Initialiser::normal(0.02)});
    x = linear(g, "conv1d", x, {.out = 12, .in_first = true});
    x = add(g, "with_tokens", x, reshape(g, "row", rows, {12}));
    const NodeId more = class_token(g, "token", rows, {.weight_init = Initialiser::normal(0.5)});
    x = add(g, "with_first", x, reshape(g, "taken", gather(g, "gather", more, {.table = {3, 0, 3}}), {12}));
    x = linear(g, "fc", x, {.out = 5, .bias = false, .weight_init = Initialiser::constant(0.5f)});
    softmax_cross_entropy(g, "token_loss", rows, token_labels, {.ignore_index = 5, .classes_last = true});
    formula_loss(g, "own", {x},
                 {.steps = {"multiply x0 p", "abs s0"},
                  .constants = {1, 0.1f, -3, 4, 5},
                  .constants_axis = 1,
                  .reduction = FormulaMean::sum,
                  .weight = 0.5});
    softmax_cross_entropy(g, "loss", x, labels,
                          {.label_smoothing = 0.1f,
                           .weight = 2,
                           .class_weights = {0.1f, 1, 2, 3, 4},
                           .ignore_index = 4,
                           .reduction = Reduction::sum});
  }
};

TEST(GraphFile, EveryOperatorSurvivesARoundTripWithItsOptions) {
  const Graph graph = Everything().graph;
  expect_same_network(graph, {.microbatch = 2});
  std::map<std::string, int> missing;
  for (const std::string& type : operator_types()) missing[type] = 1;
  for (const Node& node : graph) {
    missing.erase(std::string(node.op->type()));
    if (const auto* computed = dynamic_cast<const Computed*>(node.op.get()))
      for (const ComputedOptions::Step& step : computed->options.steps)
        missing.erase(std::string(step.op->type()));
  }
  EXPECT_TRUE(missing.empty()) << "the network has no " << missing.begin()->first;
}

// Profiles and plans are for the graph with a hash, so an option that a file can change has to change it.
TEST(GraphFile, EveryOptionIsPartOfTheHash) {
  const std::map<std::string, Json> changed = {{"out", 16},
                                               {"kernel", 5},
                                               {"stride", 3},
                                               {"pad", 0},
                                               {"dilation", 1},
                                               {"groups", 1},
                                               {"bias", true},
                                               {"line", false},
                                               {"table", {1, 0, 3}},
                                               {"centred", true},
                                               {"classes_last", false},
                                               {"rows", 12},
                                               {"width", 5},
                                               {"padding", 2},
                                               {"in_first", false},
                                               {"eps", 0.5},
                                               {"momentum", 0.5},
                                               {"fixed_statistics", false},
                                               {"affine", true},
                                               {"channels", false},
                                               {"over", {1}},
                                               {"init", 3},
                                               {"p", 0.125},
                                               {"drop", "row"},
                                               {"output_pad", 0},
                                               {"ceil_mode", false},
                                               {"count_include_pad", true},
                                               {"mode", "nearest"},
                                               {"size", 5},
                                               {"scale", 3},
                                               {"align_corners", false},
                                               {"axis", 2},
                                               {"begin", 0},
                                               {"end", 3},
                                               {"step", 1},
                                               {"order", {0, 1, 2, 3}},
                                               {"axes", {3}},
                                               {"keep_dims", false},
                                               {"shape", {-1}},
                                               {"steps", {"multiply x0 p"}},
                                               {"parameter", {1}},
                                               {"parameter_axis", 2},
                                               {"parameter_init", {{"kind", "normal"}, {"a", 7}}},
                                               {"h", 1},
                                               {"w", 1},
                                               {"function", "silu"},
                                               {"transpose_a", false},
                                               {"transpose_b", false},
                                               {"heads", 4},
                                               {"kv_heads", 2},
                                               {"causal", false},
                                               {"dropout", 0.5},
                                               {"theta", 100},
                                               {"interleaved", false},
                                               {"of", {{"op", "linear"}, {"options", {{"out", 9}}}}},
                                               {"parameters", {{{"name", "w"}, {"shape", {8, 8, 1, 3}}}}},
                                               {"buffers", {{{"name", "mask"}, {"shape", {8, 8, 3, 1}}}}},
                                               {"values", {{{"parameter", "bias"}, {"node", 2}}}},
                                               {"label_smoothing", 0.5},
                                               {"weight", 1},
                                               {"constants", {2}},
                                               {"constants_axis", -1},
                                               {"class_weights", {1}},
                                               {"ignore_index", 3},
                                               {"reduction", "mean"},
                                               {"weight_init", {{"kind", "normal"}, {"a", 7}}},
                                               {"bias_init", {{"kind", "normal"}, {"a", 7}}}};
  int options_seen = 0;
  for (const Node& node : Everything().graph) {
    if (node.role() == Role::input) continue;
    const Json options = options_of(*node.op);
    for (const auto& [name, value] : options.items()) {
      if (name == "first_weight" || node.name == "silu") continue;  // as above; and it is silu already
      if (name == "nodes") continue;                                // their operators are tested one by one
      Json other = options;
      ASSERT_TRUE(changed.contains(name)) << name;
      other[name] = changed.at(name);
      if (name == "align_corners" || name == "size") other.erase(name == "size" ? "align_corners" : "size");
      if (name == "mode") other.erase("align_corners");
      if (name == "kernel" && options.contains("line")) other[name] = {1, 7};  // of one row
      if (name == "align_corners") other["scale"] = 2;
      // A constant's two options fit each other, and mean something else than those of their names above.
      if (node.name == "constant") other = {{"shape", {3}}, {"values", {1, 2, 3}}};
      const nlohmann::json parsed = nlohmann::json::parse(other.dump());
      JsonReader reader(parsed, "options", node.name);
      EXPECT_NE(read_operator(node.op->type(), node.name, &reader)->str(), node.op->str())
          << node.name << name;
      ++options_seen;
    }
  }
  EXPECT_GT(options_seen, 40);
}

constexpr const char* small = R"({
  "format": "antichain graph", "version": 1, "model": "small_net", "made_by": "hand",
  "inputs": [{"name": "images", "shape": [3, 8, 8], "dtype": "float32"},
             {"name": "labels", "shape": [], "dtype": "int32"}],
  "nodes": [
    {"name": "conv1", "op": "conv2d", "inputs": ["images"], "from": "self.conv1, net.py:7",
     "options": {"out": 4, "kernel": [3, 3], "pad": {"before": [1, 1], "after": 1}, "bias": false}},
    {"name": "drop", "op": "dropout", "inputs": ["conv1"], "options": {"p": 0.2}},
    {"name": "depth", "op": "stochastic_depth", "inputs": ["drop"], "options": {"p": 0.2, "drop": "row"}},
    {"name": "depth2", "op": "stochastic_depth", "inputs": ["depth"], "options": {"p": 0.4}},
    {"name": "flatten", "op": "flatten", "inputs": ["depth2"]},
    {"name": "fc", "op": "linear", "inputs": ["flatten"], "options": {"out": 7}},
    {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["fc", "labels"]}]})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = small;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(GraphFile, IsAFunctionOfTheModelOptions) {
  const GraphFile file(small, "small");
  EXPECT_EQ(file.classes(), 7);
  EXPECT_EQ(file.made_by(), "hand");
  const Graph graph = file.graph({.microbatch = 5});
  EXPECT_EQ(graph.shape(graph.find("conv1")), Shape({5, 4, 8, 8}));
  EXPECT_EQ(graph[graph.find("conv1")].op->str(), "conv2d(4, kernel 3, stride 1, pad 1, groups 1, no bias)");
  EXPECT_EQ(graph[graph.find("loss")].op->str(), "softmax_cross_entropy(label_smoothing 0, weight 1)");

  const Graph other = file.graph({.microbatch = 2,
                                  .classes = 7,
                                  .image = 8,
                                  .label_smoothing = 0.5f,
                                  .soft_labels = true,
                                  .dropout = 0,
                                  .stochastic_depth = 0.2});
  EXPECT_EQ(other.shape(other.find("labels")), Shape({2, 7}));
  EXPECT_EQ(other[other.find("drop")].op->str(), "dropout(0, drop)");
  EXPECT_EQ(other[other.find("depth")].op->str(), "stochastic_depth(0.1, row, depth)");
  EXPECT_EQ(other[other.find("depth2")].op->str(), "stochastic_depth(0.2, row, depth2)");
  EXPECT_EQ(other[other.find("loss")].op->str(), "softmax_cross_entropy(label_smoothing 0.5, weight 1)");

  expect_error([&] { file.graph({.form = Form::imagenet}); }, {"small", "--form"});
  expect_error([&] { file.graph({.classes = 10}); }, {"10 classes", "small has 7"});
  expect_error([&] { file.graph({.image = 32}); }, {"3 x 32 x 32", "'images' of 3 x 8 x 8"});
}

std::string with_state(const std::string& entries) {
  return with("\"labels\"]}]}", "\"labels\"]}], \"state_dict\": [" + entries + "]}");
}

TEST(GraphFile, FilesOfWeightsMayHaveOtherNamesAndMoreTensors) {
  const std::string text = with_state(
      R"({"name": "a b/c.weight", "is": "conv1.weight"},
         {"name": "spare", "shape": [5, 2], "dtype": "float32"},
         {"name": "steps", "shape": [], "dtype": "int64"})");
  const Graph graph = GraphFile(text, "small").graph({.microbatch = 2});
  const GraphFile read = again(graph);
  for (const Graph& network : {graph, read.graph({.microbatch = 2})}) {
    std::vector<std::string> names;
    for (const StateEntry& entry : state_entries(network)) names.push_back(entry.file_name);
    EXPECT_EQ(names, (std::vector<std::string>{"a b/c.weight", "fc.weight", "fc.bias", "spare", "steps"}));
    EXPECT_EQ(initial_weights(network, 1).find("spare")->shape, (std::vector<int64_t>{5, 2}));
    EXPECT_FALSE(initial_weights(network, 1).find("steps")->is_float());
  }
  const auto refused = [](const std::string& entry, std::initializer_list<std::string> parts) {
    expect_error([&] { GraphFile(with_state(entry), "net.json"); }, parts);
  };
  refused(R"({"name": "a", "is": "conv2.weight"})", {"renames what no node has"});
  refused(R"({"name": "fc.bias", "is": "conv1.weight"})", {"two nodes have a parameter 'fc.bias'"});
  refused(R"({"name": "fc.bias", "shape": [7], "dtype": "float32"})",
          {"two nodes have a parameter 'fc.bias'"});
  refused(R"({"name": "a", "shape": [7], "dtype": "int64"})", {"state_dict[0].dtype", "float32"});
  refused(R"({"name": "a", "shape": [1, 1, 1, 1, 1, 1, 1], "dtype": "float32"})", {"6 axes"});
  refused("", {"state_dict", "empty"});
}

TEST(GraphFile, FreezesParametersByTheNamesThatFilesOfWeightsHave) {
  const std::string text = with("\"labels\"]}]}",
                                R"("labels"]}], "state_dict": [{"name": "a/b", "is": "conv1.weight"}],
                                  "frozen": ["a/b", "fc.bias"]})");
  const Graph graph = GraphFile(text, "small").graph({.microbatch = 2});
  const Graph same = again(graph).graph({.microbatch = 2});
  EXPECT_EQ(graph.hash(), same.hash());
  EXPECT_NE(graph.hash(), GraphFile(small, "small").graph({.microbatch = 2}).hash());
  EXPECT_FALSE(trains(same[same.find("conv1")]));
  EXPECT_TRUE(trains(same[same.find("fc")]));
  EXPECT_FALSE(same.needs_gradient(same.find("conv1")));
  const auto refused = [](const std::string& names, std::initializer_list<std::string> parts) {
    const std::string frozen = "\"labels\"]}], \"frozen\": " + names + "}";
    expect_error([&] { GraphFile(with("\"labels\"]}]}", frozen), "net.json"); }, parts);
  };
  refused(R"(["conv1.weigth"])", {"net.json", "'conv1.weigth'", "no such parameter"});
  refused(R"([3])", {"'3'", "no such parameter"});
  refused("[]", {"frozen", "empty"});
}

TEST(GraphFile, ANetworkMayTakeGreyImages) {
  const GraphFile file(with("[3, 8, 8]", "[1, 8, 8]"), "small");
  EXPECT_EQ(file.usual().channels, 1);
  EXPECT_EQ(file.graph({.microbatch = 2, .image = 8}).shape(0), Shape({2, 1, 8, 8}));
  expect_error([&] { file.graph({.image = 32}); }, {"1 x 32 x 32", "'images' of 1 x 8 x 8"});
}

TEST(GraphFile, WhatIsNoNetworkIsRefusedByTheNodeAndWhereItComesFrom) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string> parts) {
    expect_error([&] { GraphFile(text, "net.json"); }, parts);
  };
  const std::string conv = "node 'conv1' (self.conv1, net.py:7)";
  refused("", {"net.json:1", "empty"});
  refused("[]", {"object"});
  refused(with("antichain graph", "onnx"), {"format", "antichain graph"});
  refused(with("\"version\": 1", "\"version\": 2"), {"version 2 is not known"});
  refused(with("small_net", "../small"), {"model", "letters"});
  refused(with("\"made_by\"", "\"made\""), {"unknown field \"made\""});
  refused(with("conv2d", "conv3d"), {conv, "no operator 'conv3d'", "conv_transpose2d"});
  refused(with("\"kernel\"", "\"kernels\""), {conv, "unknown field \"kernels\""});
  refused(with("[3, 3]", "[3, 3, 3]"), {conv, "options.kernel", "one number or two"});
  refused(with("[3, 3]", "-3"), {conv, "not positive"});
  refused(with("[3, 3]", "99999"), {conv, "options.kernel", "outside -32768 to 32768"});
  refused(with("[3, 3]", "\"3\""), {conv, "options.kernel", "an integer"});
  refused(with("[3, 3]", "[11, 11]"), {conv, "a 11 x 11 kernel does not fit into an image of 2 x 3 x 8 x 8"});
  refused(with("\"out\": 4, ", ""), {conv, "conv2d(0"});
  refused(with("\"out\": 4", "\"out\": 4000000000000000"), {conv, "larger than any memory"});
  refused(with("\"bias\": false", "\"relu\": true"), {conv, "unknown field \"relu\""});
  refused(with("\"bias\": false", "\"weight_init\": {\"kind\": \"odd\", \"a\": 1}"),
          {conv, "\"odd\" is not known", "constant, normal, uniform"});
  refused(with("\"row\"", "\"rows\""), {"node 'depth'", "row, batch"});
  refused(with("\"options\": {\"p\": 0.2}", "\"options\": [1]"), {"node 'drop'", "an object"});
  refused(with("[\"conv1\"]", "[\"conv2\"]"), {"node 'drop'", "no earlier node 'conv2'"});
  refused(with("[\"conv1\"]", "[\"drop\"]"), {"node 'drop'", "no earlier node 'drop'"});
  refused(with("[\"conv1\"]", "[\"labels\"]"),
          {"takes its labels from what others compute with", "'labels'"});
  refused(with("[\"conv1\"]", "[\"images\"]"), {conv, "nothing uses its output"});
  refused(with("\"name\": \"drop\"", "\"name\": \"images\""), {"'images'", "too"});
  refused(with("\"name\": \"drop\"", "\"name\": \"a b\""), {"nodes[1].name", "blanks"});
  refused(with("[\"fc\", \"labels\"]", "[\"fc\", \"flatten\"]"), {"node 'loss'", "labels are computed"});
  refused(with("[\"fc\", \"labels\"]", "[\"fc\"]"), {"nothing uses the input 'labels'"});
  refused(with("softmax_cross_entropy\", \"inputs\": [\"fc\", \"labels\"]", "relu\", \"inputs\": [\"fc\"]"),
          {"node 'loss'", "no loss"});
  refused(with("[3, 8, 8]", "[3, 8, 8, 8, 8, 8]"), {"inputs[0].shape", "5 axes"});
  refused(with("[3, 8, 8]", "[3, 0, 8]"), {"inputs[0].shape[1]", "outside 1"});
  refused(with("float32", "float16"), {"inputs[0].dtype", "int32"});
  refused(with("\"nodes\": [", "\"nodes\": [], \"more\": ["), {"nodes", "empty"});
  refused(std::string(100'000, '['), {"64 arrays and objects"});
  expect_error([] { read_graph_file("/nowhere/net"); }, {"can't read /nowhere/net"});
  expect_error([] { to_graph_json(lower(make_model("resnet20", {.microbatch = 2}), cpu_engine()), ""); },
               {"before it is lowered"});
}

}  // namespace
}  // namespace antichain
