// Tests a network's tensors against a file's: what fits, what doesn't, and that every tensor left out is
// reported.
#include "framework/files/state_dict.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

// One weight and a batch count, as batch norm has.
class Counting : public Op {
 public:
  explicit Counting(int64_t channels) : channels_(channels) {}
  std::string_view type() const override { return "counting"; }
  std::string str() const override { return "counting"; }
  Signature infer(std::span<const Shape> x) const override {
    Signature s = test::Input::with(x[0], {{"weight", {channels_}, Initialiser::normal(1)}});
    s.buffers = {{"num_batches_tracked", {1}, Initialiser::constant(0), DType::i32}};
    return s;
  }

 private:
  int64_t channels_;
};

Graph network(int64_t channels = 3) {
  Graph graph("small");
  const NodeId x = graph.add("x", std::make_shared<test::Input>(), {});
  const NodeId a = graph.add("a", std::make_shared<Counting>(3), {x});
  graph.add("b", std::make_shared<Counting>(channels), {a});
  return graph;
}

// Returns a network's tensors, except one that `change` replaces (or leaves out, when it returns an empty
// name).
template <class Change>
Weights changed(const Change& change) {
  Weights result;
  for (NamedTensor tensor : initial_weights(network(), 5)) {
    change(tensor);
    if (!tensor.name.empty()) result.add(std::move(tensor));
  }
  return result;
}

TEST(StateDict, InitialWeightsAreNamedAndShapedAsPyTorchs) {
  const Weights w = initial_weights(network(), 5);
  ASSERT_EQ(w.size(), 4u);
  EXPECT_EQ(w[0].name, "a.weight");
  EXPECT_EQ(w[0].shape, std::vector<int64_t>{3});
  EXPECT_EQ(w[1].name, "a.num_batches_tracked");
  EXPECT_TRUE(w[1].shape.empty());
  EXPECT_EQ(std::get<1>(w[1].values), std::vector<int64_t>{0});
  const Tensor drawn = Tensor::host({.shape = {3}});
  initialise(drawn, Initialiser::normal(1), 5, "b.weight");
  EXPECT_TRUE(*w.find("b.weight") == to_named("b.weight", drawn));
}

TEST(StateDict, FitsItsOwnNetworkWhole) {
  const Fitted fitted = fit(network(), initial_weights(network(), 5), Fit::whole, "f");
  EXPECT_EQ(fitted.entries.size(), 4u);
  EXPECT_TRUE(fitted.skipped.empty());
}

void expect_misfit(const Weights& weights, const std::string& sentence) {
  expect_error([&] { fit(network(), weights, Fit::whole, "f"); },
               {"f does not fit small", sentence, "--init-partial"});
  const Fitted fitted = fit(network(), weights, Fit::partial, "f");
  ASSERT_EQ(fitted.skipped.size(), 1u);
  EXPECT_EQ(fitted.skipped[0], sentence);
}

TEST(StateDict, EveryMisfitIsNamed) {
  expect_misfit(changed([](NamedTensor& t) { t.name = t.name == "b.weight" ? "" : t.name; }),
                "'b.weight' is not in the file");
  expect_misfit(changed([](NamedTensor& t) {
                  if (t.name == "b.weight") t = {"b.weight", {1, 3}, std::vector<float>(3)};
                }),
                "'b.weight' is 1 x 3 in the file, but 3 in the network");
  expect_misfit(changed([](NamedTensor& t) {
                  if (t.name == "a.weight") t.values = std::vector<int64_t>(3);
                }),
                "'a.weight' is int64 in the file");
  expect_misfit(changed([](NamedTensor& t) {
                  if (t.name == "a.num_batches_tracked") t.values = std::vector<float>(1);
                }),
                "'a.num_batches_tracked' is float32 in the file");
  Weights more = initial_weights(network(), 5);
  more.add({"fc.bias", {2}, std::vector<float>(2)});
  expect_misfit(more, "'fc.bias' is not in the network");
}

TEST(StateDict, SaysHowManyMoreDoNotFit) {
  expect_error([] { fit(network(7), initial_weights(network(4), 5), Fit::whole, "f"); },
               {"'b.weight' is 4 in the file, but 7 in the network"});
  Weights other;
  other.add({"conv.weight", {1}, std::vector<float>(1)});
  expect_error([&] { fit(network(), other, Fit::whole, "f"); },
               {"'a.weight' is not in the file, and 2 more"});
  expect_error([&] { fit(network(), other, Fit::partial, "f"); }, {"no tensor fits"});
}

TEST(StateDict, CountsThatOldFilesLackBeginAtZero) {
  const Weights old = changed([](NamedTensor& t) {
    if (t.name.ends_with("num_batches_tracked")) t.name = "";
  });
  const Fitted fitted = fit(network(), old, Fit::whole, "f");
  EXPECT_EQ(fitted.entries.size(), 2u);
  ASSERT_EQ(fitted.skipped.size(), 1u);
  EXPECT_EQ(fitted.skipped[0],
            "'a.num_batches_tracked' and 1 more counts of batches are not in the file, and begin at 0");
  EXPECT_EQ(complete(network(), fitted, 5, "f").size(), 4u);
}

TEST(StateDict, PrefixesOfAllNamesAreLeftOut) {
  for (const std::string prefix : {"module.", "_orig_mod.", "_orig_mod.module.", "model."}) {
    const Weights named = changed([&](NamedTensor& t) { t.name = prefix + t.name; });
    EXPECT_EQ(fit(network(), named, Fit::whole, "f").entries.size(), 4u);
  }
  const Weights one = changed([](NamedTensor& t) {
    if (t.name == "a.weight") t.name = "module.a.weight";
  });
  expect_error([&] { fit(network(), one, Fit::whole, "f"); }, {"'a.weight' is not in the file"});
}

// Hugging Face's files of the module within another, and of old versions.
TEST(StateDict, TheFirstPartOfAllNamesMayBeLeftOut) {
  Graph graph("small");
  const NodeId x = graph.add("x", std::make_shared<test::Input>(), {});
  graph.add("within.a", std::make_shared<Counting>(3), {x});
  Weights short_names;
  for (NamedTensor t : initial_weights(graph, 5)) {
    t.name = t.name.substr(std::string("within.").size());
    short_names.add(std::move(t));
  }
  EXPECT_EQ(fit(graph, short_names, Fit::whole, "f").entries.size(), 2u);
}

TEST(StateDict, NormsOfBertMayHaveTheirFirstNames) {
  Graph graph("small");
  const NodeId x = graph.add("x", std::make_shared<test::Input>(), {});
  graph.add("a.LayerNorm", std::make_shared<Counting>(3), {x});
  Weights first_names;
  for (NamedTensor t : initial_weights(graph, 5)) {
    if (t.name == "a.LayerNorm.weight") t.name = "a.LayerNorm.gamma";
    first_names.add(std::move(t));
  }
  EXPECT_EQ(fit(graph, first_names, Fit::whole, "f").entries.size(), 2u);
}

TEST(StateDict, MasksAndPositionsOfFilesAreLeftOutAndNamed) {
  Weights more = initial_weights(network(), 5);
  more.add({"h.0.attn.bias", {1, 1, 2, 2}, std::vector<float>(4)});
  more.add({"h.1.attn.bias", {1, 1, 2, 2}, std::vector<float>(4)});
  const Fitted fitted = fit(network(), more, Fit::whole, "f");
  EXPECT_EQ(fitted.entries.size(), 4u);
  ASSERT_EQ(fitted.skipped.size(), 1u);
  EXPECT_EQ(fitted.skipped[0],
            "'h.0.attn.bias' and 1 more in the file: masks or positions, which the network computes");
  more.add({"h.2.attn.bias", {2}, std::vector<float>(2)});
  expect_error([&] { fit(network(), more, Fit::whole, "f"); }, {"'h.2.attn.bias' is not in the network"});
}

TEST(StateDict, FilesHaveTheNamesOfTheModule) {
  auto state = std::make_shared<StateDict>();
  state->keeper = "a";
  state->kept.push_back({"kept0", {2, 2}, Initialiser::constant(0)});
  state->names = {{"a.weight", "the first/weight"}, {"a.kept0", "spare"}};
  Graph graph("small", Precision::float32, state);
  const NodeId x = graph.add("x", std::make_shared<test::Input>(), {});
  graph.add("a", std::make_shared<Counting>(3), {x});
  const Weights w = initial_weights(graph, 5);
  ASSERT_EQ(w.size(), 3u);
  EXPECT_EQ(w[0].name, "the first/weight");
  EXPECT_EQ(w[1].name, "a.num_batches_tracked");
  EXPECT_EQ(w[2].name, "spare");
  EXPECT_EQ(fit(graph, w, Fit::whole, "f").entries.size(), 3u);
  Weights checkpoint;  // has full names
  for (NamedTensor t : w) {
    t.name = t.name == "spare" ? "a.kept0" : t.name.ends_with("weight") ? "a.weight" : t.name;
    checkpoint.add(std::move(t));
  }
  EXPECT_EQ(fit(graph, checkpoint, Fit::whole, "f").entries.size(), 3u);
}

TEST(StateDict, CountsHaveToFit) {
  const Tensor count = Tensor::host({.shape = {1}, .dtype = DType::i32});
  from_named({"n", {}, std::vector<int64_t>{INT32_MAX}}, count, "f");
  EXPECT_EQ(*count.data<int32_t>(), INT32_MAX);
  for (const int64_t bad : {int64_t(-1), int64_t(INT32_MAX) + 1})
    expect_error(
        [&] {
          from_named({"n", {}, std::vector<int64_t>{bad}}, count, "f");
        },
        {"f: 'n' is " + std::to_string(bad)});
}

TEST(StateDict, CompletesWhatIsPartial) {
  const Weights given = changed([](NamedTensor& t) { t.name = t.name == "b.weight" ? "" : t.name; });
  const Fitted fitted = fit(network(), given, Fit::partial, "f");
  const Weights all = complete(network(), fitted, 6, "f");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(*all.find("a.weight") == *given.find("a.weight"));
  EXPECT_TRUE(*all.find("b.weight") == *initial_weights(network(), 6).find("b.weight"));
}

}  // namespace
}  // namespace antichain
