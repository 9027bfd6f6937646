// The objects that the runner is made of are tested each by itself, on one rank of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "pipeline/run/action_text.h"
#include "pipeline/run/gradient_folds.h"
#include "pipeline/run/host_feed.h"
#include "pipeline/run/host_numbers.h"
#include "pipeline/run/host_timer.h"
#include "pipeline/run/node_calls.h"
#include "pipeline/run/spoil.h"
#include "pipeline/run/step_messages.h"
#include "pipeline/schedule/channels.h"
#include "tests/pipeline/run/two_stages.h"

namespace antichain {
namespace {

using test::TwoStages;

void fill(const Tensor& tensor, float value) { std::fill_n(tensor.data<float>(), tensor.elements(), value); }
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Message activation(const TwoStages& two) { return {Flow::activation, two.graph.find("relu"), -1}; }

StepMessages messages_of(TwoStages& two) {
  return {two.program.ranks[1],
          two.transport,
          [&](BufferId buffer, int m) -> const Tensor& { return two.of_rank.at(buffer, m); },
          [&](const Message& message) { return describe(message, two.graph); },
          {}};
}

TEST(StepMessages, AreReceivedAsFarAheadAsThereAreBuffers) {
  TwoStages two;
  StepMessages messages = messages_of(two);
  EXPECT_EQ(two.program.channels, 2) << "an activation, and the sum of its consumers' gradients";
  const std::vector<Instruction>& own = two.program.ranks[1].instructions;
  const auto index = [&](Verb verb) {
    return size_t(std::ranges::find(own, verb, &Instruction::verb) - own.begin());
  };
  ASSERT_EQ(two.program.ranks[1].buffers[size_t(own[index(Verb::recv)].writes.front())].copies, 2);
  messages.begin_step();
  EXPECT_EQ(two.transport.noted, (std::vector<std::string>{"recv 0", "recv 1"}));
  messages.wait(index(Verb::recv));
  EXPECT_EQ(two.transport.noted.back(), "wait 0");
  messages.done(index(Verb::recv));
  EXPECT_EQ(two.transport.noted.back(), "wait 0");
  messages.done(index(Verb::forward));  // no backward reads it again
  EXPECT_EQ(two.transport.noted.back(), "recv 2");
}

TEST(StepMessages, HaveNamesThatSayTheNode) {
  TwoStages two;
  StepMessages messages = messages_of(two);
  messages.begin_step();
  const int channel = Channels(two.schedule)(0, 1, activation(two));
  EXPECT_EQ(two.transport.name({channel, 3}), "activation of node relu, micro-batch 3");
}

TEST(GradientFolds, AddWhatWasWrittenBesideTheSum) {
  TwoStages two;
  GradientFolds folds(two.context, two.memory, two.memory.tensors().whole, *two.device);
  const NodeId linear = two.graph.find("linear");
  const std::vector<Tensor> dx = folds.begin(linear, 0);
  ASSERT_EQ(dx.size(), 1u);
  fill(dx[0], 2);
  folds.end(linear, 0, dx);
  const NodeId flatten = two.graph[linear].inputs[0];
  const Tensor dy = folds.output_gradient(flatten, 0, true);
  EXPECT_EQ(dy.raw(), dx[0].raw()) << "the only consumer writes into the sum itself";
  EXPECT_EQ(dy.data<float>()[0], 2);
}

TEST(HostFeed, FillsEachInputOfTheStage) {
  struct Source : BatchSource {
    std::vector<std::string> filled;
    void fill(std::string_view input, int m, const Tensor&) override {
      filled.push_back(std::string(input) + " " + std::to_string(m));
    }
  } source;
  TwoStages two;
  HostFeed feed(two.graph, two.memory);
  feed.begin_step(source);
  feed.load(3, source);
  EXPECT_EQ(source.filled, std::vector<std::string>{"labels 3"}) << "images are the first stage's";
  EXPECT_FALSE(feed.loads_ahead());
}

// The second stage computes on activations of value 1; each test spoils something.
class HostNumbersOfAStage : public ::testing::Test {
 protected:
  void SetUp() override {
    fill(two.memory.output(two.graph.find("relu"), 0), 1);
    std::fill_n(two.memory.output(two.graph.find("labels"), 0).data<int32_t>(), 2, 0);
    calls.begin_steps({&input, 1}, timer, spoil);
    numbers.set_judge([&](const NumberReport& report) { return !(heard = report).bad; }, true);
    numbers.begin_steps({&input, 1});
  }
  TwoStages two;
  NodeCalls calls{two.model, two.model.nodes(), two.memory, two.seat, Mode::train, *two.device};
  HostNumbers numbers{
      two.model,
      {.rank = 1, .microbatches = 4, .stages = {{1, {two.model.nodes(), &two.memory, &calls, {}}}}}};
  const StepInput input{.batch = 8};
  NodeTimer timer;
  Spoil spoil;
  NodeObserver nobody;
  NumberReport heard;
};

TEST_F(HostNumbersOfAStage, AllowAnUpdateOfFiniteGradients) {
  int asked = 0;
  EXPECT_TRUE(numbers.allows_update([&] { ++asked; }));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(heard.first);
}

TEST_F(HostNumbersOfAStage, BlameTheParameterThatSpoiltALoss) {
  const NodeId conv = two.graph.find("conv2");
  two.model[conv].params[0].data<float>()[0] = nan;
  two.model.prepare();
  calls.forward(0, {}, nobody);
  const NodeId loss = two.graph.find("loss");
  numbers.add_loss(loss, 0, two.memory.output(loss, 0));
  numbers.check_forward(1, 0);
  EXPECT_FALSE(numbers.allows_update([] {}));
  ASSERT_TRUE(heard.first);
  EXPECT_EQ(heard.first->node, conv);
  EXPECT_EQ(heard.first->what, NonFinite::What::parameter);
  StepResult result;
  numbers.finish(result);
  EXPECT_FALSE(result.updated);
  EXPECT_TRUE(std::isnan(result.loss));
}

TEST_F(HostNumbersOfAStage, FindTheNodeOfABadGradientAndLeaveGradientsAsTheyAre) {
  calls.forward(0, {}, nobody);
  spoil.set(Poison{.microbatch = 0, .gradient = true, .node = "linear"});
  calls.backward(0, Verb::backward, {}, nobody, 0, calls.nodes());
  const NodeId conv = two.graph.find("conv2");
  const float before = two.model[two.graph.find("linear")].gradients[0].data<float>()[0];
  numbers.check_backward(1, 0, Verb::backward);
  EXPECT_FALSE(numbers.allows_update([] {}));
  ASSERT_TRUE(heard.first);
  EXPECT_EQ(heard.first->node, two.graph.find("linear"));
  EXPECT_EQ(heard.first->what, NonFinite::What::input_gradient);
  EXPECT_TRUE(std::isnan(two.model[conv].gradients[0].data<float>()[0]));
  EXPECT_EQ(two.model[two.graph.find("linear")].gradients[0].data<float>()[0], before);
}

TEST_F(HostNumbersOfAStage, CheckNothingWithoutAJudge) {
  numbers.set_judge(nullptr, true);
  fill(two.model[two.graph.find("linear")].gradients[0], nan);
  EXPECT_TRUE(numbers.allows_update([] { FAIL() << "nobody is asked"; }));
}

TEST(NodeTimer, HearsOnHostsOfAllWork) {
  NodeTimer nobody;
  EXPECT_FALSE(nobody.listens());
  EXPECT_FALSE(nobody.parts_backwards());
  std::vector<NodeId> heard;
  HostTimer timer([&](NodeId id, Verb, int, double) { heard.push_back(id); });
  int done = 0;
  for (NodeTimer* each : {&nobody, static_cast<NodeTimer*>(&timer)}) {
    each->around(7, Verb::forward, 0, [&] { ++done; });
    each->around(8, Verb::forward, 0, [&] { ++done; });
  }
  EXPECT_TRUE(timer.listens());
  EXPECT_FALSE(timer.parts_backwards()) << "what training calls at once is timed at once";
  EXPECT_EQ(done, 4);
  EXPECT_EQ(heard, (std::vector<NodeId>{7, 8}));
}

TEST(NodeTimer, CountsForANodeOnHostsWhatTheHostDidSinceTheNodeBefore) {
  using namespace std::chrono_literals;
  std::vector<double> seconds;
  HostTimer timer([&](NodeId, Verb, int, double s) {
    seconds.push_back(s);
    std::this_thread::sleep_for(400ms);  // is nobody's work
  });
  const auto node = [&] { timer.around(0, Verb::forward, 0, [] {}); };
  node();
  std::this_thread::sleep_for(100ms);
  node();
  timer.let_go();  // the action ends
  std::this_thread::sleep_for(400ms);
  node();
  ASSERT_EQ(seconds.size(), 3u);
  // What takes no time may take a while on a busy machine, but less than what must not count.
  EXPECT_LT(seconds[0], 0.4);
  EXPECT_GE(seconds[1], 0.1);
  EXPECT_LT(seconds[1], 0.4);
  EXPECT_LT(seconds[2], 0.4);
}

}  // namespace
}  // namespace antichain
