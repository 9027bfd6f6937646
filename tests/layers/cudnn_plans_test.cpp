// Tests which engines our rule finds in cuDNN for an H200 that is only described to cuDNN: they are planned,
// and nothing runs. The list for ResNet-18 and ResNet-50 in bf16 is kept beside the description of the
// device, and tests/gpu.sh compares it with what a GPU chooses. ANTICHAIN_RECORD_PLANS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "layers/conv_transpose2d.h"
#include "layers/cuda/convolution_graph.h"
#include "models/model.h"

namespace antichain::cuda {
namespace {

const std::string plans_folder = ANTICHAIN_GOLDEN "/cudnn_plans/";

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::vector<Convolution> convolutions(const std::string& model, int microbatch, Precision precision) {
  std::vector<Convolution> all;
  const Graph graph = make_model(model, {.microbatch = microbatch});
  for (const Node& node : graph)
    if (const auto* conv = dynamic_cast<const Conv2d*>(node.op.get()))
      all.emplace_back(*conv, graph.shape(node.inputs[0]), precision);
  return all;
}

class CudnnPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    const size_t version = cudnnGetVersion();
    if (version != 91900)
      GTEST_SKIP() << "the list is cuDNN 9.19.0's, and this is " << version << ": record it anew";
  }
  void TearDown() override { ::unsetenv("ANTICHAIN_CUDA_SKIP"); }

  ExecutionPlan chosen(const Convolution& c, Pass pass, const EngineRule& rule) const {
    return choose_plan(h200_, operation_graph(h200_, describe(c, pass)), rule);
  }

  // Returns a line for a pass, as ANTICHAIN_CUDA_PLANS=1 prints it, without the engine's notes.
  std::string line(const Convolution& c, Pass pass, Factors factors) const {
    const EngineRule rule = rule_for(c.dtype, factors);
    const ExecutionPlan plan = chosen(c, pass, rule);
    return fmt::format("{} is {}", in_words(c, pass, rule),
                       plan.plan ? fmt::format("engine {}", plan.number) : "not to be had");
  }

  const PlanTarget h200_ = described_device(text_of(plans_folder + "nvidia-h200.json"));
};

TEST_F(CudnnPlans, AreTheRecordedOnesForAnH200) {
  std::set<std::string> lines;
  for (const char* model : {"resnet18", "resnet50"})
    for (const int microbatch : {32, 128})
      for (const Convolution& c : convolutions(model, microbatch, Precision::bf16)) {
        for (const Pass pass : {Pass::forward, Pass::input_gradient})
          lines.insert(line(c, pass, Factors::exact));
        Convolution wide = c;  // as plan_bf16_weight_gradient has it
        wide.dtype = DType::f32;
        if (c.weight[2] != 1 || c.stride != Extent(1))
          lines.insert(line(wide, Pass::weight_gradient, Factors::tf32));
      }
  std::string found;
  for (const std::string& one : lines) found += one + "\n";
  const std::string file = plans_folder + "nvidia-h200-bf16.txt";
  if (std::getenv("ANTICHAIN_RECORD_PLANS")) std::ofstream(file) << found;
  EXPECT_EQ(found, text_of(file));
  EXPECT_EQ(found.find("not to be had"), std::string::npos);
}

TEST_F(CudnnPlans, AreThereInEachPrecision) {
  for (const auto& [precision, factors] :
       {std::pair(Precision::float32, Factors::exact), std::pair(Precision::float32, Factors::tf32)})
    for (const Convolution& c : convolutions("resnet18", 32, precision))
      for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient})
        EXPECT_EQ(line(c, pass, factors).find("not to be had"), std::string::npos) << line(c, pass, factors);
}

// None of these needs our own loops.
TEST_F(CudnnPlans, AreThereForDilatedUnevenDepthwiseAndTransposedConvolutions) {
  const Shape x{32, 96, 28, 28};
  const ConvTranspose2d transposed({.out = 96, .kernel = 4, .stride = 2, .pad = 1});
  for (const Conv2d& conv : {Conv2d({.out = 64, .kernel = 3, .pad = 2, .dilation = 2}),
                             Conv2d({.out = 64, .kernel = 3, .stride = 2, .pad = {Extent(0), Extent(1)}}),
                             Conv2d({.out = 96, .kernel = 3, .pad = 1, .groups = 96}),
                             Conv2d({.out = 96, .kernel = 5, .stride = 2, .pad = 2, .groups = 96}),
                             transposed.convolution({32, 48, 14, 14})})
    for (const Precision precision : {Precision::float32, Precision::bf16})
      for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
        Convolution c(conv, x, precision);
        if (pass == Pass::weight_gradient) c.dtype = DType::f32;  // as plan_bf16_weight_gradient has it
        const std::string found = line(c, pass, Factors::exact);
        EXPECT_EQ(found.find("not to be had"), std::string::npos) << found;
      }
}

// Weight gradients that are rounded to bf16 need no compiling either.
TEST_F(CudnnPlans, AreThereForRoundedWeightGradients) {
  for (const char* model : {"resnet18", "resnet50"})
    for (const int microbatch : {32, 128})
      for (Convolution c : convolutions(model, microbatch, Precision::bf16)) {
        c.gradient = DType::bf16;
        const ExecutionPlan plan = chosen(c, Pass::weight_gradient, rule_for(c.dtype, Factors::exact));
        ASSERT_TRUE(plan.plan) << line(c, Pass::weight_gradient, Factors::exact);
        EXPECT_EQ(plan.engine.find("compiled"), std::string::npos) << plan.engine;
      }
}

// Leaves out the engines that obey the rule, one by one, until none is left.
TEST_F(CudnnPlans, GoToTheNextEngineWhereOneIsLeftOut) {
  const Convolution c = convolutions("resnet18", 32, Precision::bf16)[1];
  std::set<int64_t> engines;
  for (const auto& plan : obeying_plans(h200_, operation_graph(h200_, describe(c, Pass::forward)),
                                        rule_for(c.dtype, Factors::exact)))
    engines.insert(plan.number);
  ASSERT_GT(engines.size(), 1u);
  std::string skipped;
  for (size_t i = 0; i < engines.size(); ++i) {
    const ExecutionPlan plan = chosen(c, Pass::forward, rule_for(c.dtype, Factors::exact));
    ASSERT_TRUE(plan.plan) << "without " << skipped;
    EXPECT_TRUE(engines.contains(plan.number)) << plan.engine;
    if (!skipped.empty()) skipped += ",";
    skipped += std::to_string(plan.number);
    ::setenv("ANTICHAIN_CUDA_SKIP", skipped.c_str(), 1);
  }
  for (const int64_t engine : engines)
    EXPECT_TRUE(rule_for(c.dtype, Factors::exact).without.contains(engine));
}

}  // namespace
}  // namespace antichain::cuda
