// A plan is written as another runtime reads it, or refused where that runtime can't cut so.
#include "partition/plan/runtime_format.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
using nlohmann::json;

// A ModuleNet is a profile whose nodes are named as a PyTorch model's modules.
struct ModuleNet {
  ModuleNet() {
    profile.model = "net";
    images = add_input(profile);
    labels = add_input(profile);
  }
  int node(const std::string& name, std::vector<int> inputs, int64_t param_bytes = 0,
           std::vector<std::string> absorbed = {}) {
    const int n = add(profile, std::move(inputs));
    profile.nodes[n].name = name;
    profile.nodes[n].op = name.substr(name.rfind('.') + 1);
    profile.nodes[n].cost.param_bytes = param_bytes;
    profile.nodes[n].absorbed = std::move(absorbed);
    return n;
  }
  int layer(const std::string& name, std::vector<int> inputs, std::vector<std::string> absorbed = {}) {
    return node(name, std::move(inputs), 8, std::move(absorbed));
  }
  // A node whose call a module made; those modules were recorded. A module has parameters.
  int call(const std::string& name, const std::string& module, std::vector<int> inputs) {
    const int n = node(name, std::move(inputs), module.empty() ? 0 : 8);
    profile.nodes[n].module = module;
    profile.nodes[n].op = "call";
    return n;
  }
  void loss(int logits) { profile.nodes[node("loss", {logits, labels})].role = Role::loss; }

  // Returns the plan whose stages begin at these nodes.
  Plan cut(const std::vector<std::string>& firsts, std::vector<std::vector<int>> ranks = {}) const {
    Plan plan;
    plan.model = profile.model;
    plan.stages.resize(firsts.size() + 1);
    size_t stage = 0;
    for (int n = 0; n < int(profile.nodes.size()); ++n) {
      if (profile.nodes[n].role == Role::input) continue;
      if (stage < firsts.size() && profile.nodes[n].name == firsts[stage]) ++stage;
      plan.stages[stage].nodes.push_back(n);
    }
    for (size_t s = 0; s < plan.stages.size(); ++s)
      plan.stages[s].ranks = ranks.empty() ? std::vector<int>{int(s)} : ranks[s];
    return plan;
  }
  std::string text(const std::string& runtime, const std::vector<std::string>& firsts) const {
    return plan_for(runtime, cut(firsts), profile);
  }
  std::string refused_plan(const std::string& runtime, const Plan& plan) const {
    return error_of([&] { plan_for(runtime, plan, profile); });
  }
  std::string refused(const std::string& runtime, const std::vector<std::string>& firsts) const {
    return refused_plan(runtime, cut(firsts));
  }

  Profile profile;
  int images, labels;
};

// A stem, two residual blocks of which the second has a projection, and a head.
ModuleNet residual_net() {
  ModuleNet net;
  int x = net.layer("conv1", {net.images}, {"relu"});
  x = net.node("maxpool", {x});
  for (const std::string block : {"layer1.0", "layer2.0"}) {
    const int first = net.layer(block + ".conv1", {x}, {block + ".relu1"});
    const int shortcut = block == "layer2.0" ? net.layer(block + ".downsample.0", {x}) : x;
    x = net.layer(block + ".conv2", {first, shortcut}, {block + ".add", block + ".relu2"});
  }
  x = net.node("avgpool", {x});
  x = net.node("flatten", {x});
  net.loss(net.layer("fc", {x}));
  return net;
}

// A list of modules of which every second one works in place.
ModuleNet net_in_place() {
  ModuleNet net;
  int x = net.layer("0", {net.images});
  for (const int i : {1, 3, 5}) {
    x = net.node(std::to_string(i), {x});
    net.profile.nodes[x].in_place = true;
    x = net.layer(std::to_string(i + 1), {x});
  }
  net.loss(x);
  return net;
}

// An embedding, transformer layers, a norm and a head.
ModuleNet transformer(int layers) {
  ModuleNet net;
  int x = net.layer("wte", {net.images});
  for (int i = 0; i < layers; ++i) {
    const std::string block = "h." + std::to_string(i);
    const int attention = net.layer(block + ".attn", {net.layer(block + ".ln_1", {x})});
    x = net.node(block + ".add", {x, attention});
    x = net.node(block + ".add_1", {x, net.layer(block + ".mlp.fc", {net.layer(block + ".ln_2", {x})})});
  }
  net.loss(net.layer("lm_head", {net.layer("ln_f", {x})}));
  return net;
}

// Linear layers a, b, … with functions between them, so most cuts have one module only.
ModuleNet perceptron(int layers) {
  ModuleNet net;
  net.profile.called_once.emplace();
  int x = net.images;
  for (int i = 0; i < layers; ++i) {
    const std::string name(1, char('a' + i));
    net.profile.called_once->push_back(name);
    x = net.call(name, name, {x});
    x = net.call(i == 0 ? "tanh" : "tanh_" + std::to_string(i), "", {x});
  }
  net.loss(x);
  return net;
}

// A ModuleList of stock encoder layers between two linear layers. Names of a stock layer's own calls have
// counts.
ModuleNet encoder(int layers) {
  ModuleNet net;
  net.profile.called_once = {"inp", "out"};
  int x = net.call("inp", "inp", {net.images});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    for (const char* part : {"", ".self_attn", ".norm1", ".linear1"})
      net.profile.called_once->push_back(layer + part);
    const int q = net.call(layer + ".self_attn", layer + ".self_attn", {x});
    const int attention = net.call(layer + ".self_attn_1", layer + ".self_attn", {q});
    x = net.call(layer, layer, {x, attention});
    x = net.call(layer + ".norm1", layer + ".norm1", {x});
    x = net.call(layer + "_1", layer, {x, net.call(layer + ".linear1", layer + ".linear1", {x})});
  }
  net.loss(net.call("out", "out", {x}));
  return net;
}

TEST(RuntimeFormat, SplitPointsAreTheOutermostModulesThatAreSurelyCalled) {
  const ModuleNet net = residual_net();
  EXPECT_EQ(json::parse(net.text("torch", {"layer1.0.conv1", "layer2.0.conv1", "fc"})),
            json({{"layer1.0", "BEGINNING"}, {"layer2.0", "BEGINNING"}, {"fc", "BEGINNING"}}));
  // A block without a projection is cut within.
  EXPECT_EQ(json::parse(net.text("torch", {"layer1.0.conv2"})), json({{"layer1.0.conv2", "BEGINNING"}}));
  // Behind a module is before a function.
  EXPECT_EQ(json::parse(net.text("torch", {"avgpool"})), json({{"layer2.0", "END"}}));
  EXPECT_EQ(net.text("torch", {}), "{\n\n}\n");
  // A module has one of two points, and its neighbour the other.
  EXPECT_EQ(net.text("torch", {"layer2.0.conv1", "avgpool"}),
            "{\n  \"layer1.0\": \"END\",\n  \"layer2.0\": \"END\"\n}\n");
}

TEST(RuntimeFormat, ASplitPointIsAModuleThatWasCalledOnce) {
  const ModuleNet net = encoder(3);
  EXPECT_EQ(
      json::parse(net.text("torch", {"layers.0.self_attn", "layers.1.self_attn", "layers.2.norm1", "out"})),
      json({{"layers.0", "BEGINNING"},
            {"layers.1", "BEGINNING"},
            {"layers.2.norm1", "BEGINNING"},
            {"out", "BEGINNING"}}));
  expect_has(net.refused("torch", {"layers.1.self_attn_1"}), "before stage 1, the profile has no such place");
  // Nothing is known of a module that has no record and computes nothing, nor of one whose names have counts.
  ModuleNet unknown = net;
  unknown.profile.called_once.reset();
  for (ProfileNode& node : unknown.profile.nodes) node.module.clear(), node.cost.param_bytes = 8;
  EXPECT_EQ(json::parse(unknown.text("torch", {"layers.0.self_attn", "out"})),
            json({{"inp", "END"}, {"out", "BEGINNING"}}));
  for (const char* first : {"layers.1.self_attn", "layers.1.self_attn_1", "layers.1_1"})
    expect_has(unknown.refused("torch", {first}), "measure with antichain.profile_torch, which records");
}

TEST(RuntimeFormat, AModuleIsSplitOnce) {
  const ModuleNet net = perceptron(4);
  EXPECT_EQ(json::parse(net.text("torch", {"tanh", "b", "c", "d"})),
            json({{"a", "END"}, {"b", "BEGINNING"}, {"c", "BEGINNING"}, {"d", "BEGINNING"}}));
  expect_has(net.refused("torch", {"b", "tanh_1"}),
             "between b and tanh_1, before stage 2, the profile has none but b, which another cut needs");
  EXPECT_EQ(layers_for("torch", net.profile).size(), 5);
  EXPECT_EQ(layers_for("torch", net.profile, SplitCuts::one_by_one).size(), 7 + 1);
}

TEST(RuntimeFormat, StagesKeepTheOrderInWhichTheCodeRuns) {
  ModuleNet net;  // two towers, the second of which reads an input of its own
  net.profile.called_once = {"a", "b", "c", "d", "e"};
  const int a = net.call("b", "b", {net.call("a", "a", {net.images})});
  const int c = net.call("d", "d", {net.call("c", "c", {net.images})});
  net.loss(net.call("e", "e", {a, c}));
  EXPECT_EQ(json::parse(net.text("torch", {"d", "e"})), json({{"d", "BEGINNING"}, {"e", "BEGINNING"}}));
  expect_has(net.refused("torch", {"b"}), "first stage alone, but stage 1 begins between a and b");
  Plan plan = net.cut({"d"});
  plan.stages[0].nodes = {2, 4}, plan.stages[1].nodes = {3, 5, 6, 7};  // a, c; b, d, e, loss
  expect_has(net.refused_plan("torch", plan), "b of stage 1 runs before c of stage 0");
  PlanOptions options{
      .stages = 3, .objective = Objective::compute, .together = layers_for("torch", net.profile)};
  EXPECT_EQ(plan_for("torch", planner(Method::antichain)(net.profile, options), net.profile),
            net.text("torch", {"d", "e"}));
}

TEST(RuntimeFormat, ANumberedModuleNeedsNoParameters) {
  ModuleNet net;
  int x = net.layer("features.0", {net.images}, {"features.1"});
  x = net.node("features.2", {x});
  net.layer("features.10", {x});
  EXPECT_EQ(json::parse(net.text("torch", {"features.2", "features.10"})),
            json({{"features.2", "BEGINNING"}, {"features.10", "BEGINNING"}}));
}

TEST(RuntimeFormat, APlaceThatNoModuleHasIsRefused) {
  const ModuleNet net = residual_net();
  expect_has(net.refused("torch", {"maxpool"}), "between conv1 and maxpool, before stage 1");
  expect_has(
      net.refused("torch", {"layer2.0.downsample.0"}),
      "layer2.0.conv1 and layer2.0.downsample.0, between which stage 1 begins, are in parallel branches");
  expect_has(net.refused("torch", {"loss"}), "stage 1 has nothing but the loss");
  // A parameter that the code multiplies by is no module.
  ModuleNet scaled;
  int x = scaled.layer("conv", {scaled.images});
  x = scaled.layer("gamma", {scaled.node("act", {x})});
  scaled.profile.nodes[x].op = "layer_scale";
  expect_has(scaled.refused("torch", {"gamma"}), "between act and gamma");
}

TEST(RuntimeFormat, NothingIsChangedAcrossACut) {
  const ModuleNet net = net_in_place();
  for (const char* runtime : {"torch", "deepspeed"}) {
    expect_has(net.refused(runtime, {"1"}),
               "1 works in place on the output of 0, but stage 1 begins between them");
    EXPECT_NE(net.text(runtime, {"2", "4"}), "");
    for (const std::vector<int>& layer : layers_for(runtime, net.profile))
      EXPECT_FALSE(net.profile.nodes[layer[0]].in_place) << runtime;
  }
}

TEST(RuntimeFormat, DeepSpeedsLayersPassOneTensor) {
  const ModuleNet net = residual_net();
  const json file = json::parse(net.text("deepspeed", {"layer2.0.conv1", "fc"}));
  EXPECT_EQ(file["layers"], json::parse(R"([["conv1"], ["relu"], ["maxpool"],
                            ["layer1.0.conv1", "layer1.0.relu1", "layer1.0.conv2",
                             "layer1.0.add", "layer1.0.relu2"],
                            ["layer2.0.conv1", "layer2.0.relu1", "layer2.0.downsample.0", "layer2.0.conv2",
                             "layer2.0.add", "layer2.0.relu2"],
                            ["avgpool"], ["flatten"], ["fc"]])"));
  EXPECT_EQ(file["parts"], json({0, 4, 7, 8}));
  expect_has(net.refused("deepspeed", {"layer1.0.conv2"}),
             "layer1.0.conv1 of stage 0 and layer1.0.conv2 of stage 1 are in one such layer");
  // What a block computes before and behind its branches is in its layer.
  const json blocks = json::parse(transformer(2).text("deepspeed", {"h.1.ln_1"}));
  EXPECT_EQ(blocks["layers"][2],
            json({"h.1.ln_1", "h.1.attn", "h.1.add", "h.1.ln_2", "h.1.mlp.fc", "h.1.add_1"}));
  EXPECT_EQ(blocks["parts"], json({0, 2, 5}));
  expect_has(net.refused("deepspeed", {"loss"}), "stage 1 has nothing but the loss");
  EXPECT_EQ(json::parse(encoder(6).text("deepspeed", {"layers.2.self_attn"}))["layers"].size(), 8);
}

TEST(RuntimeFormat, EachStageOfDeepSpeedHasParameters) {
  ModuleNet net = perceptron(4);  // a, tanh, b, tanh_1, c, tanh_2, d, tanh_3
  EXPECT_EQ(json::parse(net.text("deepspeed", {"tanh", "c"}))["parts"], json({0, 1, 4, 8}));
  expect_has(net.refused("deepspeed", {"tanh", "b"}), "stage 1, which begins with tanh, has no parameters");
  expect_has(net.refused("deepspeed", {"tanh_3"}), "stage 1, which begins with tanh_3, has no parameters");
  EXPECT_EQ(layers_for("deepspeed", net.profile, SplitCuts::one_by_one).size(), 7);
  const auto firsts = [&] {
    std::vector<std::string> names;
    for (const std::vector<int>& layer : layers_for("deepspeed", net.profile))
      names.push_back(net.profile.nodes[layer[0]].name);
    return names;
  };
  EXPECT_EQ(firsts(), (std::vector<std::string>{"a", "b", "c", "d"}));
  for (ProfileNode& node : net.profile.nodes)
    if (node.name == "tanh_1") node.cost.output_bytes *= 4;
  EXPECT_EQ(firsts(), (std::vector<std::string>{"a", "b", "tanh_1", "d"}));
}

TEST(RuntimeFormat, MegatronCountsTransformerLayers) {
  const ModuleNet net = transformer(12);
  EXPECT_EQ(net.text("megatron", {"h.3.ln_1", "h.4.ln_1", "h.11.ln_1"}), "Et*3|t|t*7|tL\n");
  EXPECT_EQ(net.text("megatron", {"h.0.ln_1", "ln_f"}), "E|t*12|L\n");
  const std::vector<std::string> firsts = {"h.3.ln_1", "h.6.ln_1", "h.9.ln_1"};
  EXPECT_EQ(plan_for("megatron", net.cut(firsts, {{0}, {1}, {0}, {1}}), net.profile), "Et*3|t*3|t*3|t*3L\n");
  EXPECT_EQ(plan_for("megatron", net.cut(firsts, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}), net.profile),
            "Et*3|t*3|t*3|t*3L\n");
  expect_has(net.refused_plan("megatron", net.cut(firsts, {{0}, {1}, {1}, {0}})),
             "stage s to rank s mod 2, but this plan has stage 0 on rank 0 and stage 2 on rank 1");
  expect_has(net.refused("megatron", {"h.5.ln_2"}),
             "transformer layer 5 in stage 0, but this plan has h.5.ln_2 in stage 1");
  expect_has(net.refused("megatron", {"lm_head"}),
             "what follows the transformer layers in stage 1, but this plan has ln_f in stage 0");
  EXPECT_EQ(encoder(6).text("megatron", {"layers.2.self_attn", "out"}), "Et*2|t*4|L\n");
  ModuleNet added;  // what the model adds behind a layer is a part of it
  int x = added.layer("embed", {added.images});
  for (const std::string i : {"0", "1", "2"}) {
    x = added.node("sum_" + i, {x, added.layer("layers." + i + ".fc", {x})});
    added.profile.nodes[x].op = "add";
  }
  added.loss(added.layer("head", {x}));
  EXPECT_EQ(added.text("megatron", {"layers.1.fc"}), "Et|t*2L\n");
  expect_has(added.refused("megatron", {"sum_1"}), "transformer layer 1 in stage 0, but this plan has sum_1");
  expect_has(residual_net().refused("megatron", {"fc"}),
             "net has no list of equal modules that is most of it");
}

bool can_read(const std::string& runtime, const Plan& plan, const Profile& profile) {
  try {
    plan_for(runtime, plan, profile);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Returns the smallest slowest stage of all plans of two stages that the runtime can read, where a stage is a
// piece of the nodes' sequence.
double best_of_two(const ModuleNet& net, const std::string& runtime) {
  double best = std::numeric_limits<double>::infinity();
  for (const ProfileNode& first : net.profile.nodes) {
    if (first.role == Role::input || first.name == "conv1" || first.name == "wte") continue;
    const Plan plan = net.cut({first.name});
    if (!can_read(runtime, plan, net.profile)) continue;
    double slowest = 0;
    for (const PlanStage& stage : plan.stages) {
      double sum = 0;
      for (const int n : stage.nodes) sum += net.profile.nodes[n].cost.compute_s();
      slowest = std::max(slowest, sum);
    }
    best = std::min(best, slowest);
  }
  return best;
}

TEST(RuntimeFormat, ThePlannerCutsBestOfAllCutsThatARuntimeCanRead) {
  const auto expect_best = [](ModuleNet net, const std::string& runtime) {
    for (size_t n = 0; n < net.profile.nodes.size(); ++n)  // uneven: 1 to 11 ms
      if (net.profile.nodes[n].role == Role::compute)
        net.profile.nodes[n].cost.forward_s = 1e-3 * double(n * n % 11 + 1);
    PlanOptions options;
    options.objective = Objective::compute;
    for (options.stages = 2; options.stages <= 4; ++options.stages) {
      options.together = layers_for(runtime, net.profile,
                                    options.stages == 2 ? SplitCuts::one_by_one : SplitCuts::any_at_once);
      const Plan plan = planner(Method::antichain)(net.profile, options);
      EXPECT_TRUE(can_read(runtime, plan, net.profile)) << runtime << " on " << options.stages;
      if (options.stages == 2) {
        EXPECT_NEAR(plan.bottleneck_s, best_of_two(net, runtime), 1e-8) << runtime;
      }
    }
  };
  for (const std::string& runtime : runtime_names()) expect_best(transformer(5), runtime);
  for (const char* runtime : {"torch", "deepspeed"}) {
    expect_best(residual_net(), runtime);
    expect_best(net_in_place(), runtime);
    expect_best(perceptron(4), runtime);
    expect_best(encoder(5), runtime);
  }
}

TEST(RuntimeFormat, EveryStageHasAsManyReplicas) {
  const ModuleNet net = transformer(2);
  for (const std::string& runtime : runtime_names())
    expect_has(net.refused_plan(runtime, net.cut({"h.1.ln_1"}, {{0, 1}, {2}})),
               "stage 0 has 2 ranks and stage 1 has 1");
}

TEST(RuntimeFormat, ThereAreThree) {
  const ModuleNet net = transformer(2);
  EXPECT_EQ(runtime_names(), (std::vector<std::string>{"torch", "deepspeed", "megatron"}));
  expect_has(net.refused("jax", {"h.1.ln_1"}), "there is no format for the runtime jax");
}

}  // namespace
}  // namespace antichain
