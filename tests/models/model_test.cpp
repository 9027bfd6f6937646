// Tests that the models are as large as the papers say, known by name, and obedient to their options.
#include "models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "framework/backend.h"
#include "framework/error.h"
#include "layers/attention.h"
#include "layers/cpu/backend.h"
#include "layers/dropout.h"
#include "layers/stochastic_depth.h"
#include "models/llama.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

int64_t parameters(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph)
    for (const ParamSpec& p : node.signature.params)
      if (p.of.empty()) count += p.shape.elements();
  return count;
}

int64_t conv(int64_t in, int64_t out, int64_t kernel) { return in * out * kernel * kernel; }

// torchvision's models with 1,000 classes.
TEST(Models, ImagenetFormsHaveThePublishedParameters) {
  const std::pair<const char*, int64_t> published[] = {
      {"alexnet", 61100840},        {"vgg16", 138357544},        {"resnet18", 11689512},
      {"resnet50", 25557032},       {"resnet101", 44549160},     {"resnext50", 25028904},
      {"resnext101", 88791336},     {"inception_v3", 23834568},  {"densenet121", 7978856},
      {"squeezenet1_0", 1248424},   {"mobilenet_v2", 3504872},   {"mobilenet_v3_large", 5483032},
      {"efficientnet_b0", 5288548}, {"convnext_tiny", 28589128}, {"vit_b_16", 86567656},
      {"vit_tiny", 5717416},
  };
  for (const auto& [name, count] : published)
    EXPECT_EQ(parameters(make_model(name, {.form = Form::imagenet, .microbatch = 2})), count) << name;
  const ModelOptions with_head{.form = Form::imagenet, .microbatch = 2, .aux = 0.4};
  EXPECT_EQ(parameters(make_model("inception_v3", with_head)), 27161264);
}

// Hugging Face's GPT2LMHeadModel and BertForMaskedLM; nanoGPT's with a bias in each layer; llama2.c's of 15
// million with half the heads of keys and values.
TEST(Models, OfTokensHaveThePublishedParameters) {
  const auto block = [](int64_t c) { return 4 * c + 12 * c * c + 9 * c; };
  const std::pair<const char*, int64_t> published[] = {
      {"gpt2", 124439808},
      {"gpt_baby", (256 + 256) * 384 + 6 * block(384) + 2 * 384},
      {"gpt_nano", (256 + 64) * 128 + 4 * block(128) + 2 * 128},
      {"bert_base", 109514298},
      {"llama", 14694048},
  };
  for (const auto& [name, count] : published)
    EXPECT_EQ(parameters(make_model(name, {.microbatch = 1})), count) << name;
  // Positions of nanoGPT's are as many as tokens; GPT-2's table is longer than what a sample has.
  EXPECT_EQ(parameters(make_model("gpt_nano", {.microbatch = 1, .sequence = 32})),
            published[2].second - 32 * 128);
  EXPECT_EQ(parameters(make_model("gpt2", {.microbatch = 1, .sequence = 32})), 124439808);
  expect_error([] { make_model("gpt2", {.microbatch = 1, .sequence = 1025}); }, {"1024 positions", "1025"});
}

TEST(Models, RefuseOptionsForWhatTheyDoNotRead) {
  expect_error([] { make_model("gpt_nano", {.form = Form::imagenet}); },
               {"gpt_nano", "reads tokens", "form"});
  expect_error([] { make_model("gpt_nano", {.image = 32}); }, {"reads tokens", "images"});
  expect_error([] { make_model("gpt_nano", {.classes = 10}); }, {"reads tokens", "--vocabulary"});
  expect_error([] { make_model("resnet20", {.sequence = 64}); }, {"reads images", "sequences"});
  expect_error([] { make_model("vit_tiny", {.image = 30}); }, {"30 x 30", "patches of 4 x 4"});
}

TEST(Models, PackedSamplesHaveDocumentsAndPositions) {
  for (const char* name : {"gpt_nano", "llama", "bert_base"}) {
    const Graph graph = make_model(name, {.microbatch = 2, .sequence = 16, .packed = true});
    for (const char* input : {"documents", "positions"}) {
      ASSERT_GE(graph.find(input), 0) << name;
      EXPECT_EQ(graph.shape(graph.find(input)), (Shape{2, 16}));
    }
  }
}

TEST(Models, DropoutReachesAttention) {
  const auto rates = [](double p) {
    std::vector<double> found;
    for (const Node& node : make_model("gpt_nano", {.microbatch = 1, .dropout = p})) {
      if (const auto* drop = dynamic_cast<const Dropout*>(node.op.get())) found.push_back(drop->p);
      if (const auto* attention = dynamic_cast<const Attention*>(node.op.get()))
        found.push_back(attention->options.dropout);
    }
    return found;
  };
  EXPECT_EQ(rates(0.25), std::vector<double>(1 + 4 * 3, 0.25));
  EXPECT_EQ(rates(0), std::vector<double>(4, 0));
}

// He et al. 2016, section 4.2, plus batch norm (2 per channel) and option B's shortcuts.
int64_t cifar_resnet(int64_t n) {
  int64_t expected = conv(3, 16, 3) + 2 * 16;
  for (int64_t stage = 0, in = 16; stage < 3; ++stage) {
    const int64_t c = 16 << stage;
    expected += conv(in, c, 3) + (2 * n - 1) * conv(c, c, 3) + 2 * n * 2 * c;
    if (in != c) expected += conv(in, c, 1) + 2 * c;
    in = c;
  }
  return expected + 64 * 10 + 10;
}

// Muon takes these: of each block all matrices, but neither tables nor heads, tied or not.
TEST(Models, HiddenMatricesAreThoseOfLinearLayersWithin) {
  const auto hidden = [](const Graph& graph) {
    std::set<std::string> names;
    for (const Node& node : graph)
      for (const ParamSpec& param : node.signature.params)
        if (param.hidden_matrix) names.insert(full_name(node, param));
    return names;
  };
  const auto of = [&](const std::string& name) { return hidden(make_model(name, {.microbatch = 2})); };
  EXPECT_EQ(of("gpt_nano").size(), 4 * 4u);
  EXPECT_EQ(of("llama").size(), 6 * 7u);
  EXPECT_EQ(of("bert_base").size(), 12 * 6 + 1u);
  EXPECT_EQ(of("resnet20"), std::set<std::string>{});
  const LlamaTable untied{.layers = 1, .tied = false};
  EXPECT_FALSE(
      hidden(llama_network("untied", untied, completed({}, usual_llama))).contains("lm_head.weight"));
  register_cpu_backend();
  EXPECT_EQ(hidden(lower(make_model("gpt_nano"), backend("cpu"))), of("gpt_nano"));
}

TEST(Models, CifarResNetsHaveThePapersParameters) {
  EXPECT_EQ(cifar_resnet(3), 272474);
  EXPECT_EQ(parameters(make_model("resnet20")), cifar_resnet(3));
  EXPECT_EQ(parameters(make_model("resnet32")), cifar_resnet(5));
  EXPECT_EQ(parameters(make_model("resnet56")), cifar_resnet(9));
}

// A CIFAR form changes the stem's kernel and the classifier of the published network, and nothing else.
TEST(Models, CifarFormsDifferInStemAndClassifier) {
  const auto change = [](const char* name, bool head = false) {
    const double aux = head ? 0.4 : 0;
    return parameters(make_model(name, {.form = Form::imagenet, .microbatch = 2, .aux = aux})) -
           parameters(make_model(name, {.microbatch = 2, .aux = aux}));
  };
  const auto classes = [](int64_t in) { return 990 * (in + 1); };
  const int64_t stem = conv(3, 64, 7) - conv(3, 64, 3);
  EXPECT_EQ(change("resnet18"), stem + classes(512));
  for (const char* name : {"resnet50", "resnet101", "resnext50", "resnext101"})
    EXPECT_EQ(change(name), stem + classes(2048)) << name;
  EXPECT_EQ(change("densenet121"), stem + classes(1024));
  EXPECT_EQ(change("inception_v3"), classes(2048));
  EXPECT_EQ(change("inception_v3", true), classes(2048) + classes(768));
  EXPECT_EQ(change("squeezenet1_0"), conv(3, 96, 7) - conv(3, 96, 3) + classes(512));
  for (const char* name : {"efficientnet_b0", "mobilenet_v2", "mobilenet_v3_large"})
    EXPECT_EQ(change(name), classes(1280)) << name;
  EXPECT_EQ(change("convnext_tiny"), conv(3, 96, 4) - conv(3, 96, 2) + classes(768));
  EXPECT_EQ(change("alexnet"), conv(3, 64, 11) - conv(3, 64, 3) + 256 * (36 - 4) * 4096 + classes(4096));
  // The classifier of the CIFAR form is 512 - 512 - 512 - 10.
  EXPECT_EQ(change("vgg16"),
            (25088 + 1) * 4096 + (4096 + 1) * 4096 + (4096 + 1) * 1000 - 2 * 513 * 512 - 513 * 10);
}

TEST(Models, UnknownNameSuggestsTheNearest) {
  expect_error([] { make_model("resnet19"); },
               {"resnet19", "did you mean 'resnet18'", "vgg16", "squeezenet1_0", "resnet20"});
  try {
    make_model("resnet19");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(Models, ShortNameOfSqueezeNetIsUnderstood) {
  EXPECT_EQ(make_model("squeezenet").hash(), make_model("squeezenet1_0").hash());
}

TEST(Models, RefusesWhatANetworkDoesNotHave) {
  expect_error([] { make_model("resnet20", {.form = Form::imagenet}); },
               {"resnet20", "32 x 32", "no ImageNet form"});
  expect_error([] { make_model("vgg16", {.aux = 0.4}); }, {"vgg16", "auxiliary head", "inception_v3"});
  expect_error([] { make_model("inception_v3", {.aux = -1}); }, {"weigh -1"});
  expect_error([] { make_model("vgg16", {.dropout = 1}); }, {"classifier.2", "p < 1"});
  // The last pool of five finds nothing left of 16 pixels.
  expect_error([] { make_model("vgg16", {.image = 16}); }, {"features.30", "2 x 2 window"});
}

TEST(Models, TheAuxiliaryHeadIsOneMoreLossWithItsWeight) {
  for (Form form : {Form::cifar, Form::imagenet}) {
    const Graph graph = make_model("inception_v3", {.form = form, .microbatch = 2, .aux = 0.3});
    const NodeId head = graph.find("AuxLogits.loss");
    ASSERT_GE(head, 0);
    EXPECT_EQ(graph[head].role(), Role::loss);
    EXPECT_EQ(graph[head].signature.loss_weight, 0.3);
    EXPECT_EQ(graph[graph.find("loss")].signature.loss_weight, 1.0);
  }
}

TEST(Models, DropoutIsAnOption) {
  for (const char* name : {"alexnet", "vgg16", "squeezenet1_0", "inception_v3", "efficientnet_b0",
                           "mobilenet_v2", "mobilenet_v3_large"}) {
    int found = 0;
    for (const Node& node : make_model(name, {.microbatch = 2, .dropout = 0.25}))
      if (const auto* drop = dynamic_cast<const Dropout*>(node.op.get())) {
        EXPECT_EQ(drop->p, 0.25) << name;
        ++found;
      }
    EXPECT_GT(found, 0) << name;
  }
  EXPECT_EQ(make_model("resnet20", {.dropout = 0}).model(), "resnet20");
  expect_error([] { make_model("resnet20", {.dropout = 0.3}); }, {"resnet20", "has no dropout"});
  expect_error([] { make_model("vgg16", {.stochastic_depth = 0.3}); }, {"has no stochastic depth"});
}

TEST(Models, HaveTheirOwnUsualDropout) {
  const auto dropped = [](const char* name) {
    for (const Node& node : make_model(name, {.microbatch = 2}))
      if (const auto* drop = dynamic_cast<const Dropout*>(node.op.get())) return drop->p;
    return 0.0;
  };
  EXPECT_EQ(dropped("alexnet"), 0.5);
  for (const char* name : {"efficientnet_b0", "mobilenet_v2", "mobilenet_v3_large"}) {
    EXPECT_EQ(dropped(name), 0.2) << name;
    EXPECT_EQ(known_model(name).traits.usual.dropout, 0.2) << name;
  }
}

// Returns the rates by node, in the order of the network.
std::vector<double> stochastic_depths(const char* name, std::optional<double> rate) {
  std::vector<double> rates;
  for (const Node& node : make_model(name, {.microbatch = 2, .stochastic_depth = rate}))
    if (const auto* drop = dynamic_cast<const StochasticDepth*>(node.op.get())) rates.push_back(drop->p);
  return rates;
}

// torchvision's rates are those of the blocks 0 to n − 1, in sixteenths for EfficientNet and in seventeenths
// for ConvNeXt. Blocks without a shortcut, and the first, drop nothing.
TEST(Models, StochasticDepthGrowsWithTheBlock) {
  const std::vector<double> rates = stochastic_depths("efficientnet_b0", {});
  EXPECT_EQ(rates.size(), 9u);
  EXPECT_TRUE(std::ranges::is_sorted(rates));
  EXPECT_DOUBLE_EQ(rates.front(), 0.2 * 2 / 16);
  EXPECT_DOUBLE_EQ(rates.back(), 0.2 * 14 / 16);
  EXPECT_DOUBLE_EQ(stochastic_depths("efficientnet_b0", 0.8).back(), 0.8 * 14 / 16);
  EXPECT_TRUE(stochastic_depths("efficientnet_b0", 0.0).empty());
  const std::vector<double> convnext = stochastic_depths("convnext_tiny", {});
  EXPECT_EQ(convnext.size(), 17u);
  EXPECT_TRUE(std::ranges::is_sorted(convnext));
  EXPECT_DOUBLE_EQ(convnext.front(), 0.1 / 17);
  EXPECT_DOUBLE_EQ(convnext.back(), 0.1);
}

TEST(Models, ImagenetFormsSeeTheUsualImages) {
  const auto images = [](const char* name, ModelOptions o) {
    o.form = Form::imagenet;
    o.microbatch = 2;
    const Graph graph = make_model(name, o);
    return graph.shape(graph.find("images"));
  };
  EXPECT_EQ(images("resnet50", {}), (Shape{2, 3, 224, 224}));
  EXPECT_EQ(images("inception_v3", {}), (Shape{2, 3, 299, 299}));
  EXPECT_EQ(images("resnet50", {.image = 96}), (Shape{2, 3, 96, 96}));
}

class Model : public ::testing::TestWithParam<std::string> {
 protected:
  bool reads_tokens() const { return known_model(GetParam()).traits.reads == Reads::tokens; }
  ModelOptions telling_apart(int outputs) const {
    return reads_tokens() ? ModelOptions{.microbatch = 5, .sequence = 12, .vocabulary = outputs}
                          : ModelOptions{.microbatch = 5, .classes = outputs};
  }
};

TEST_P(Model, HasTheAgreedInputsAndEnd) {
  const Graph graph = make_model(GetParam(), telling_apart(7));
  EXPECT_EQ(graph.model(), GetParam());
  const bool tokens = reads_tokens();
  EXPECT_EQ(graph.shape(graph.find(tokens ? "tokens" : "images")),
            tokens ? (Shape{5, 12}) : (Shape{5, 3, 32, 32}));
  EXPECT_EQ(graph.shape(graph.find("labels")), tokens ? (Shape{5, 12}) : (Shape{5}));
  EXPECT_EQ(graph.find("loss"), graph.size() - 1);
  EXPECT_EQ(graph[graph.size() - 1].role(), Role::loss);
  EXPECT_EQ(graph.shape(graph[graph.size() - 1].inputs[0]), tokens ? (Shape{5, 12, 7}) : (Shape{5, 7}));
}

TEST_P(Model, EveryNodeIsUsed) {
  const Graph graph = make_model(GetParam());
  for (NodeId id = 0; id < graph.size(); ++id)
    EXPECT_EQ(graph.consumers(id).empty(), graph[id].role() == Role::loss) << graph[id].name;
}

TEST_P(Model, HashIsStableAndTellsOptionsApart) {
  const auto hash = [](const ModelOptions& options) { return make_model(GetParam(), options).hash(); };
  EXPECT_EQ(hash({}), hash({}));
  EXPECT_NE(hash({}), hash({.microbatch = 16}));
  EXPECT_NE(hash({}), hash(telling_apart(100)));
  EXPECT_NE(hash({}), hash({.label_smoothing = 0.1f}));
}

INSTANTIATE_TEST_SUITE_P(All, Model, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace antichain
