// Weights that several nodes have learn from all of them, are there once on a rank, and once in files.
// same_bits_test.cpp and replicas_test.cpp train these networks, too.
#include "tests/pipeline/run/shared_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/files/state_dict.h"
#include "framework/random.h"
#include "layers/cpu/backend.h"
#include "layers/elementwise.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "models/graph_file.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "pipeline/stage/stage_state.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

constexpr int microbatches = 3;

Graph without_sharing(const Graph& graph) {
  Graph all(graph.model());
  for (const Node& node : graph) all.add(node.name, node.op, node.inputs);
  return all;
}

// Returns the name that the use has where nothing is shared.
std::string own_name(const Graph& graph, const ParamUse& use) {
  const Node& node = graph[use.node];
  const std::string& name = node.signature.params[size_t(use.param)].name;
  return name.empty() ? node.name : node.name + "." + name;
}

class NoiseSource : public BatchSource {
 public:
  void fill(std::string_view, int m, const Tensor& out) override {
    for (int64_t i = 0; i < out.elements(); ++i) {
      const uint32_t word = Philox(uint64_t(m)).words(uint64_t(i))[0];
      if (out.dtype() == DType::i32)
        out.data<int32_t>()[i] = int32_t(word % 10);
      else
        out.data<float>()[i] = float(word >> 8) * 0x1p-24f - 0.5f;
    }
  }
};

// One rank with the whole network.
struct Alone {
  explicit Alone(const Graph& network) : graph(lower(network, backend("cpu"))) {}

  Weights gradients(const Weights& weights) {
    load_weights(model, weights, Fit::whole, "a test");
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
    SoloTransport transport;
    StageRunner runner(model, profile, plan, schedule, Mode::train, transport);
    NoiseSource source;
    runner.run({.batch = 2 * microbatches, .rate = 0}, source);
    return gradients_of(model);
  }

  Graph graph;
  Context context{backend("cpu")};
  Profile profile = priced_by_flops(unpriced(graph, "cpu"));
  Plan plan = by_antichains(profile, 1);
  RankModel model{graph, plan.stages[0].nodes, context, 7};
};

void expect_the_sum_of_all_uses(const Graph& shared) {
  const Weights weights = initial_weights(shared, 7);
  const Graph apart = without_sharing(shared);
  Weights of_each;
  for (NamedTensor tensor : initial_weights(apart, 7)) {
    for (const auto& [name, uses] : shared.shared())
      for (const ParamUse& use : uses)
        if (tensor.name == own_name(shared, use)) tensor.values = weights.find(name)->values;
    of_each.add(std::move(tensor));
  }
  const Weights whole = Alone(shared).gradients(weights), parts = Alone(apart).gradients(of_each);
  ASSERT_FALSE(shared.shared().empty());
  for (const auto& [name, uses] : shared.shared()) {
    std::vector<float> sum = std::get<0>(parts.find(own_name(shared, uses.back()))->values);
    for (auto use = uses.rbegin() + 1; use != uses.rend(); ++use)
      std::ranges::transform(sum, std::get<0>(parts.find(own_name(shared, *use))->values), sum.begin(),
                             std::plus());
    EXPECT_EQ(std::get<0>(whole.find(name)->values), sum) << name;
  }
}

class SharedWeights : public ::testing::TestWithParam<const char*> {
 protected:
  SharedWeights() { register_cpu_backend(); }
  const Graph shared_ = network(GetParam(), {.microbatch = 2, .classes = 10});
};

TEST_P(SharedWeights, HaveTheSumOfTheGradientsOfAllUsesFromTheLastToTheFirst) {
  expect_the_sum_of_all_uses(shared_);
}

// The first of the nodes becomes one with a later one, and then stands behind the second.
TEST(SharingWeights, SurvivesThatNodesBecomeOneInAnotherOrder) {
  register_cpu_backend();
  const ModelOptions o{.microbatch = 2, .classes = 10, .image = 8};
  Graph g("fused");
  const ImageInputs in = add_image_inputs(g, o);
  const NodeId x = linear(g, "x", flatten(g, "flatten", in.images), {.out = 6});
  const ElementwiseOptions factors{.steps = {"multiply x0 p"}, .parameter = Shape{6}};
  const NodeId a = elementwise(g, "a", {x}, factors), b = elementwise(g, "b", {x}, factors);
  g.share(b, a);
  const NodeId c = elementwise(g, "c", {a}, {.steps = {"tanh x0"}});
  const NodeId d = elementwise(g, "d", {b, c, b}, {.steps = {"multiply x0 x1", "add s0 x2"}});
  add_loss(g, in.labels, linear(g, "fc", d, {.out = o.classes}), o);
  const Graph lowered = lower(g, backend("cpu"));
  ASSERT_GT(lowered.find("a"), lowered.find("b"));
  EXPECT_EQ(lowered.shared().at("a").size(), 2u);
  expect_the_sum_of_all_uses(g);
}

TEST_P(SharedWeights, AreOnARankOnceAndInFilesOnce) {
  Alone alone(shared_), apart(without_sharing(shared_));
  int64_t again = 0;
  for (const auto& [name, uses] : alone.graph.shared()) {
    const auto tensor = [&](const ParamUse& use) { return alone.model[use.node].params[size_t(use.param)]; };
    for (const ParamUse& use : uses) EXPECT_EQ(tensor(use).raw(), tensor(uses[0]).raw()) << name;
    again += int64_t(uses.size() - 1) * tensor(uses[0]).bytes();
  }
  const Optimiser& optimiser = *default_optimiser();  // which has one slot
  EXPECT_EQ(state_bytes(apart.model).all - state_bytes(alone.model).all, 2 * again);
  EXPECT_EQ(file_bytes(apart.graph) - file_bytes(alone.graph), again);
  EXPECT_EQ(sum_of(apart.profile, apart.plan.stages[0].nodes).held_bytes -
                sum_of(alone.profile, alone.plan.stages[0].nodes).held_bytes,
            2 * again);
  const auto need = [&](Alone& of) {
    const Schedule schedule = make_schedule(of.profile, of.plan, Policy::one_f_one_b, microbatches);
    return step_need(of.graph, optimiser, of.profile, of.plan, schedule, 0).step.held();
  };
  EXPECT_EQ(need(apart) - need(alone), 2 * again);
}

TEST_P(SharedWeights, AreInProfilesAndGraphFiles) {
  const Profile profile = Alone(shared_).profile;
  const std::string json = to_json(profile);
  EXPECT_EQ(to_json(profile_from_json(json, "a test")), json);
  EXPECT_EQ(profile.shared_weights().size(), shared_.shared().size());
  const std::string text = to_graph_json(shared_, "a test");
  const Graph read = GraphFile(text, "a test").graph({.microbatch = 2});
  EXPECT_EQ(read.hash(), shared_.hash());
  EXPECT_NE(read.hash(), without_sharing(shared_).hash());
  EXPECT_EQ(to_graph_json(read, "a test"), text);
}

// Between two ranks the gradient's first part goes one way, and all of it the other way.
TEST_P(SharedWeights, TravelAfterAllBackwards) {
  const Profile profile = Alone(shared_).profile;
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Plan plan = at_random(seed)(profile, 2);
    const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
    int on_both = 0, changes = 0;
    for (const SharedWeight& weight : profile.shared_weights()) {
      int before = changes;
      for (size_t i = 1; i < weight.uses.size(); ++i)
        changes += stage_of[size_t(weight.uses[i].node)] != stage_of[size_t(weight.uses[i - 1].node)];
      on_both += changes > before;
    }
    const Schedule schedule = make_schedule(profile, plan, Policy::zero_bubble_h1, microbatches);
    int sent = 0;
    for (const auto& actions : schedule.ranks)
      for (size_t i = 0; i < actions.size(); ++i) {
        if (actions[i].message.flow != Flow::weight) continue;
        sent += actions[i].verb == Verb::send;
        Schedule broken = schedule;
        auto& of_rank = broken.ranks[size_t(&actions - schedule.ranks.data())];
        of_rank.erase(of_rank.begin() + int(i));
        expect_error([&] { validate(broken, profile, plan); }, {"missing: a shared weight's gradient"});
      }
    EXPECT_EQ(sent, changes + on_both);
    EXPECT_EQ(parse_schedule(print(schedule), "a test").ranks, schedule.ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, SharedWeights,
                         ::testing::Values("repeated", "siamese", "unrolled", "tied"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SharingWeights, IsRefusedWhereThereAreNotTwoOfAKind) {
  Graph g = siamese({.microbatch = 2, .classes = 10});
  expect_error([&] { g.share("fc.weight", "left.fc.weight"); }, {"'fc.weight' is 10 x 12, but 12 x 512"});
  expect_error([&] { g.share("left.fc.bias", "right.fc.bias"); }, {"no parameter of an earlier node"});
  expect_error([&] { g.share("right.fc.bias", "left.fc.bias"); }, {"'right.fc.bias' is shared twice"});
  expect_error([&] { g.share("fc.weight", "nothing.weight"); }, {"no parameter 'nothing.weight'"});
}

TEST(SharingWeights, IsRefusedInGraphFilesThatNameNothing) {
  const std::string text = to_graph_json(siamese({.microbatch = 2, .classes = 10}), "a test");
  const auto changed = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return [file = std::string(text).replace(at, from.size(), to)] { GraphFile(file, "net.json"); };
  };
  const std::string bias = R"("bias":"left.fc.bias")";
  expect_error(changed(bias, R"("bias":"nothing.bias")"),
               {"'right.fc' shares 'nothing.bias', which is no parameter of an earlier node"});
  expect_error(changed(bias, R"("bias":"fc.bias")"), {"'right.fc.bias' is 12, but 10 as 'fc.bias'"});
  expect_error(changed(bias, R"("beta":"left.fc.bias")"), {"there is no parameter 'right.fc.beta'"});
  expect_error(changed(bias, R"("bias":"left.conv.bias")"), {"'right.fc.bias' is 12, but 16"});
  expect_error(changed(bias, R"("bias":3)"), {"net.json"});
}

}  // namespace
}  // namespace antichain::test
