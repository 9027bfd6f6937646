// Tests what operators of language models promise beyond their formulas: clear errors, one pass for a gate,
// and one weight for an embedding and a head.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "framework/graph.h"
#include "layers/cpu/dnnl.h"
#include "layers/elementwise.h"
#include "layers/embedding.h"
#include "layers/gather.h"
#include "layers/input.h"
#include "layers/linear.h"
#include "layers/positions.h"
#include "layers/softmax_cross_entropy.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain {
namespace {

NodeId add_tokens(Graph& graph, Shape shape, DType dtype = DType::i32) {
  return graph.add("tokens", std::make_shared<Input>(TensorSpec{.shape = shape, .dtype = dtype}), {});
}

TEST(Embedding, NamesSamplePositionAndNumberOfWhatIsNoRow) {
  const harness::OpCase c{"embedding", std::make_shared<Embedding>(EmbeddingOptions{5, 2}), {{2, 3}}};
  harness::Values values = harness::draw(c);
  values.x[0] = {0, 1, 4, -1, 5, 2};
  expect_error([&] { harness::run(cpu_engine(), c, values); }, {"sample 1 has number 5 at position 1"});
  values.x[0][4] = -2;
  expect_error([&] { harness::run(cpu_engine(), c, values); }, {"number -2", "rows 0 to 4"});
}

TEST(Embedding, IsRefusedWithoutIntegers) {
  Graph graph("floats");
  embedding(graph, "wte", add_tokens(graph, {2, 3}, DType::f32), {.rows = 5, .width = 4});
  const Graph lowered = lower(graph, cpu_engine());
  const Node& node = lowered[lowered.find("wte")];
  const TensorSpec ids = lowered[node.inputs[0]].output();
  expect_error(
      [&] {
        cpu_engine().entry("embedding").make(*node.op, {&ids, 1}, node.lowering);
      },
      {"embedding wants the int32 numbers of an input, not f32"});
  expect_error([] { Embedding({.rows = 3, .width = 4, .padding = 3}); }, {"has no row 3"});
}

TEST(Positions, AreAtLeastThoseOfASample) {
  Graph graph("short");
  const NodeId x = add_tokens(graph, {2, 7, 4}, DType::f32);
  expect_error([&] { add_positions(graph, "wpe", x, {.rows = 6}); }, {"'wpe' has 6 positions", "has 7"});
  const auto numbers = std::make_shared<Input>(TensorSpec{.shape = {2, 7}, .dtype = DType::i32});
  const NodeId places = graph.add("places", numbers, {});
  expect_error([&] { add_positions(graph, "wpe", x, {.rows = 6}, places, "sum"); }, {"'wpe' has 6", "has 7"});
  const NodeId y = add_positions(graph, "wpe", x, {.rows = 8});
  EXPECT_EQ(full_name(graph[y], graph[y].signature.params[0]), "wpe.weight");
  EXPECT_EQ(graph[y].signature.params[0].shape, (Shape{8, 4}));
}

TEST(Gather, RefusesPlacesThatThereAreNot) {
  Graph graph("gather");
  const NodeId x = add_tokens(graph, {2, 7}, DType::f32);
  expect_error(
      [&] {
        gather(graph, "a", x, {.table = {0, 7}});
      },
      {"gather(axis 1, 0 7)", "place 7", "2 x 7"});
  expect_error([&] { gather(graph, "a", x, {.axis = 0, .table = {0}}); }, {"would gather the samples"});
  const std::vector<int64_t> long_table(40, 3);
  EXPECT_EQ(Gather({.table = long_table}).str(), Gather({.table = long_table}).str());
  EXPECT_NE(Gather({.table = long_table}).str(), Gather({.table = std::vector<int64_t>(40, 4)}).str());
}

TEST(SwiGlu, TakesOnePass) {
  Graph graph("gated");
  const NodeId x = add_tokens(graph, {2, 5, 8}, DType::f32);
  const NodeId gate = linear(graph, "gate", x, {.out = 12}), up = linear(graph, "up", x, {.out = 12});
  const NodeId silu = elementwise(graph, "silu", {gate}, {.steps = {"sigmoid x0", "multiply x0 s0"}});
  elementwise(graph, "product", {silu, up}, {.steps = {"multiply x0 x1"}});
  EXPECT_EQ(lower(graph, cpu_engine()).size(), graph.size() - 1);
}

TEST(Loss, OfClassesLastIsFloat32InBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  Graph graph("logits");
  const NodeId tokens = add_tokens(graph, {2, 5});
  const NodeId logits = embedding(graph, "logits", tokens, {.rows = 7, .width = 7});
  softmax_cross_entropy(graph, "loss", logits, tokens, {.classes_last = true});
  const Graph lowered = lower(graph, cpu_engine(), Precision::bf16);
  EXPECT_EQ(lowered.size(), graph.size()) << "nothing is converted";
  EXPECT_EQ(lowered[lowered.find("logits")].output().dtype, DType::bf16);
  EXPECT_EQ(lowered[lowered.find("loss")].output().dtype, DType::f32);
}

TEST(SharedWeights, OfAnEmbeddingAndAHeadHaveOneLayout) {
  for (const Precision precision : {Precision::float32, Precision::bf16}) {
    if (precision == Precision::bf16 && !cpu::has_bf16()) continue;
    Graph graph("tied");
    const NodeId wte = embedding(graph, "wte", add_tokens(graph, {2, 5}), {.rows = 48, .width = 32});
    linear(graph, "head", wte, {.out = 48, .bias = false});
    graph.share("head.weight", "wte.weight");
    EXPECT_EQ(lower(graph, cpu_engine(), precision).shared().at("wte.weight").size(), 2u);
  }
}

}  // namespace
}  // namespace antichain
