// Compares the ImageNet forms with torchvision's models (tests/golden/state_dicts.py): every tensor of the
// state_dict with its name and shape, every module's output, batch norm's numbers, and the distributions that
// initial weights are drawn from.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "layers/batch_norm.h"
#include "layers/layer_norm.h"
#include "models/model.h"

namespace antichain {
namespace {

std::string joined(const int64_t* begin, const int64_t* end) {
  return fmt::format("{}", fmt::join(begin, end, "x"));
}

// Returns one module as a line of text: what can be compared exactly. A module is all of a tensor's full name
// but its last part.
std::string line_of(const Node& node) {
  const Shape& y = node.signature.y.shape;
  const std::string first = full_name(node, node.signature.params.front());
  std::string line = fmt::format("{} {}", first.substr(0, first.rfind('.')), joined(y.begin() + 1, y.end()));
  if (const auto* norm = dynamic_cast<const BatchNorm*>(node.op.get()))
    line += fmt::format("; eps {:g}; momentum {:g}", norm->options.eps, norm->options.momentum);
  if (const auto* norm = dynamic_cast<const LayerNorm*>(node.op.get()))
    line += fmt::format("; eps {:g}", norm->options.eps);
  for (const auto* tensors : {&node.signature.params, &node.signature.buffers})
    for (const ParamSpec& t : *tensors) {
      // PyTorch's count of batches is a scalar; ours has one element.
      const bool scalar = t.name == "num_batches_tracked" && t.shape == Shape{1};
      const std::string name = full_name(node, t);
      line += fmt::format("; {} {}", name.substr(name.rfind('.') + 1),
                          scalar ? "scalar" : joined(t.shape.begin(), t.shape.end()));
    }
  return line;
}

std::vector<std::string> lines_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph)
    if (!node.signature.params.empty()) lines.push_back(line_of(node));
  return lines;
}

// Drawn says how torchvision drew a tensor, by full name.
struct Drawn {
  double deviation, largest;
};

struct Golden {
  std::vector<std::string> lines;  // without the drawn values
  std::map<std::string, Drawn> drawn;
};

Golden read_golden(const std::string& model) {
  Golden golden;
  std::ifstream file(fmt::format("{}/state_dicts/{}.txt", ANTICHAIN_GOLDEN, model));
  EXPECT_TRUE(file) << "tests/golden/state_dicts.py writes the file for " << model;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::string field, module, text;
    while (std::getline(fields, field, ';')) {
      std::istringstream words(field);
      std::string name, shape;
      words >> name >> shape;
      if (text.empty()) module = name;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, shape);
      if (Drawn d{}; words >> d.deviation >> d.largest) golden.drawn[module + "." + name] = d;
    }
    golden.lines.push_back(text);
  }
  return golden;
}

// Returns the deviation of values whose largest, if it is 2, is left out. PyTorch 1.13's trunc_normal_
// inverts the distribution at uniform numbers, one in some millions of which rounds to the end. Its infinite
// value is then cut to 2, a hundred deviations.
double deviation_without_clamped(const Drawn& d, int64_t n) {
  const double cut = d.largest == 2 ? 2 : 0;
  return std::sqrt(d.deviation * d.deviation - cut * cut / double(n));
}

// Tests whether n values of this deviation and size may have been drawn like that. The limit is five standard
// errors of a standard deviation, sqrt((kurtosis − 1) / 4 n) of it, and for the largest what n draws reach.
// The file has four digits.
void expect_drawn(const Initialiser& init, int64_t n, const Drawn& d, const std::string& name) {
  const double a = init.a, digits = 1e-3;
  switch (init.kind) {
    case Initialiser::Kind::constant:
      EXPECT_EQ(d.deviation, 0) << name;
      EXPECT_FLOAT_EQ(float(d.largest), std::abs(init.a)) << name;
      break;
    case Initialiser::Kind::uniform:
      EXPECT_NEAR(d.deviation / (a / std::sqrt(3.0)), 1, 5 * std::sqrt(0.2 / double(n)) + digits) << name;
      EXPECT_LE(d.largest, a * (1 + digits)) << name;
      EXPECT_GE(d.largest, a * (1 - 10.0 / double(n) - digits)) << name;
      break;
    case Initialiser::Kind::normal:
      EXPECT_NEAR(deviation_without_clamped(d, n) / a, 1, 5 * std::sqrt(0.5 / double(n)) + digits) << name;
      EXPECT_GE(d.largest, 2.5 * a) << name;  // half of these tensors have 10,000 values, the smallest 864
      break;
  }
}

class StateDict : public ::testing::TestWithParam<std::string> {
 protected:
  Graph graph(double aux) {
    return make_model(GetParam(), {.form = Form::imagenet, .microbatch = 2, .aux = aux});
  }
  double usual_aux() const { return GetParam() == "inception_v3" ? 0.4 : 0; }
};

TEST_P(StateDict, ModulesAreTorchvisions) {
  std::vector<std::string> expected = read_golden(GetParam()).lines;
  EXPECT_EQ(lines_of(graph(usual_aux())), expected);
  std::erase_if(expected, [](const std::string& line) { return line.starts_with("AuxLogits"); });
  EXPECT_EQ(lines_of(graph(0)), expected);
}

TEST_P(StateDict, InitialWeightsAreDrawnAlike) {
  const Golden golden = read_golden(GetParam());
  for (const Node& node : graph(usual_aux()))
    for (const auto* tensors : {&node.signature.params, &node.signature.buffers})
      for (const ParamSpec& t : *tensors) {
        const std::string name = full_name(node, t);
        ASSERT_TRUE(golden.drawn.contains(name)) << name;
        expect_drawn(t.init, t.shape.elements(), golden.drawn.at(name), name);
      }
}

INSTANTIATE_TEST_SUITE_P(All, StateDict,
                         ::testing::Values("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0",
                                           "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "resnet18",
                                           "resnet50", "resnet101", "resnext50", "resnext101",
                                           "squeezenet1_0", "vgg16"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace antichain
