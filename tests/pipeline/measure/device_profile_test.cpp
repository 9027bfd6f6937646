// Profiles of a device are made on stand-ins whose kernels take a known time (fake_cuda.h). A node's time is
// its kernels', whether the host is slow or fast, and the step that the profile predicts is the step that
// ran.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <thread>

#include "framework/cuda/resources.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/measure/bench.h"
#include "pipeline/measure/profiler.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/run/two_stages.h"

namespace antichain::test {
namespace {

// A kernel's time in ms, by what it does; what is not listed takes 0.05.
const std::map<std::string, double> table_ms = {{"conv2d forward", 2},
                                                {"conv2d input", 3},
                                                {"conv2d weight", 1},
                                                {"relu forward", 0.5},
                                                {"relu input", 0.4},
                                                {"add forward", 0.3},
                                                {"add input", 0.2},
                                                {"flatten forward", 0.1},
                                                {"flatten input", 0.15},
                                                {"linear forward", 1},
                                                {"linear input", 1.2},
                                                {"linear weight", 0.7},
                                                {"reorder forward", 0.3},
                                                {"reorder input", 0.35},
                                                {"add", 0.25},
                                                {"update", 0.15},
                                                {"softmax_cross_entropy forward", 0.6},
                                                {"softmax_cross_entropy input", 0.45}};

double of_table_s(const std::string& work) {
  const auto it = table_ms.find(work);
  return (it == table_ms.end() ? 0.05 : it->second) * 1e-3;
}

class DeviceProfile : public ::testing::Test {
 protected:
  void SetUp() override { fake_cuda::reset(1); }
  void TearDown() override {
    FakeGpu::the().takes_s = nullptr;
    fake_cuda::reset(1);
  }
  // Other programs may keep a thread of the test from a core for longer than the device is held.
  static bool in_one_of_20(const std::function<bool()>& attempt) {
    for (int i = 0; i < 20; ++i)
      if (attempt()) return true;
    return false;
  }
};

class Black : public BatchSource {
  void fill(std::string_view, int, const Tensor& out) override {
    std::fill_n(out.raw(), out.bytes(), std::byte(0));
  }
};

struct Heard {
  NodeId id;
  Verb verb;
  int microbatch;
  double seconds;
};

// Runs one step with a clock, after one that warmed up.
std::vector<Heard> clocked_step(const Graph& graph, int microbatches) {
  const FakeGpu& gpu = FakeGpu::the();
  Context context(gpu);
  gpu.enter(context);
  const Profile profile = unpriced(graph, gpu.description());
  const Plan plan = one_stage(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
  SoloTransport alone;
  RankModel model(graph, plan.stages[0].nodes, context, 0);
  StageRunner runner(model, profile, plan, schedule, Mode::train, alone);
  std::vector<Heard> heard;
  runner.set_clock([&](NodeId id, Verb verb, int m, double s) { heard.push_back({id, verb, m, s}); });
  Black source;
  for (int i = 0; i < 2; ++i) {
    heard.clear();
    runner.run({.batch = microbatches}, source);
  }
  return heard;
}

std::string work_of(const Graph& graph, const Heard& h) {
  if (h.verb == Verb::update) return "update";
  const std::string type(graph[h.id].op->type());
  return type + (h.verb == Verb::forward          ? " forward"
                 : h.verb == Verb::backward_input ? " input"
                                                  : " weight");
}

// These kernels take a tenth of the table's time, and the host needs longer than that to start each. They are
// timed without a gap, and without the time of the stamps. What comes second of a node is a fold, or a copy
// of losses, or more parameters.
bool hears_the_kernels(double host_s) {
  FakeGpu& gpu = FakeGpu::the();
  fake_cuda::reset(1);
  fake_cuda::keep_time(1e-4);
  gpu.takes_s = [host_s](const std::string& work) {
    if (host_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(host_s));
    return of_table_s(work) / 10;
  };
  const Graph graph = two_consumers(gpu, 1);
  const std::vector<Heard> heard = clocked_step(graph, 2);
  std::map<std::tuple<NodeId, Verb, int>, int> pieces;
  int folds = 0;
  bool right = true;
  for (const Heard& h : heard) {
    if (h.id == no_node) continue;
    const bool more = pieces[{h.id, h.verb, h.microbatch}]++ > 0;
    double takes_s = of_table_s(work_of(graph, h)) / 10;
    if (h.verb == Verb::update) takes_s *= double(graph[h.id].signature.params.size());
    if (more) {
      folds += int(h.seconds > 1e-6);
      takes_s = h.seconds > 1e-6 ? of_table_s("add") / 10 : 0;
    }
    // A stamp is float32 milliseconds since the step's beginning: 12 ns after 200 ms, and ns are what the
    // stand-in counts.
    right = right && std::abs(h.seconds - takes_s) < 1e-7;
  }
  EXPECT_EQ(folds, 2) << "of the tensor with two consumers, once per micro-batch";
  EXPECT_EQ((pieces[{graph.find("conv2"), Verb::backward_weight, 1}]), 1);
  EXPECT_EQ((pieces[{graph.find("linear"), Verb::update, 0}]), 1);
  return right;
}

TEST_F(DeviceProfile, NodesTakeWhatTheirKernelsTake) {
  EXPECT_TRUE(in_one_of_20([] { return hears_the_kernels(0); }));
}

TEST_F(DeviceProfile, NodesTakeWhatTheirKernelsTakeHoweverSlowTheHost) {
  EXPECT_TRUE(in_one_of_20([] { return hears_the_kernels(4e-4); }));
}

// What is started while the device is held waits for the host, but not forever: the host may be kept by the
// device.
TEST_F(DeviceProfile, AHeldDeviceWaitsForTheHostForAWhile) {
  const Context context(FakeGpu::the());
  const auto step = cuda::make_step_stream(context);
  std::atomic<int> done{0};
  const auto waits = [&] {
    done = 0;
    step->hold();
    fake_cuda::launch(cuda::stream_of(context), [&] { ++done; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const bool waited = done == 0;
    step->let_go();
    step->wait();
    return waited && done == 1;
  };
  EXPECT_TRUE(in_one_of_20(waits));
  step->hold();
  fake_cuda::launch(cuda::stream_of(context), [&] { ++done; });
  step->wait();
  EXPECT_EQ(done, 2);
  step->let_go();  // too late for that one, and none of the next one's
  EXPECT_TRUE(in_one_of_20(waits));
}

// The table's own times leave the stand-in time enough to really compute. So nodes have their share in
// actions that ran as in training, from graphs. Only the host's part of a step depends on what else this
// machine does.
TEST_F(DeviceProfile, NodesAddUpToTheActionsThatRan) {
  FakeGpu& gpu = FakeGpu::the();
  gpu.takes_s = of_table_s;
  const Graph graph = two_consumers(gpu, 1);
  double action_s = 0, update_s = 0;  // a forward and a backward
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string type(graph[id].op->type());
    if (graph[id].role() == Role::input) continue;
    action_s += of_table_s(type + " forward");
    const bool wants_dx = graph[id].inputs[0] != graph.find("images") && type != "input";
    if (wants_dx && graph.needs_gradient(graph[id].inputs[0])) action_s += of_table_s(type + " input");
    if (!graph[id].signature.params.empty()) action_s += of_table_s(type + " weight");
    update_s += of_table_s("update") * double(graph[id].signature.params.size());
  }
  action_s += of_table_s("add");  // the fold
  EXPECT_TRUE(in_one_of_20([&] {
    fake_cuda::reset(1);
    fake_cuda::keep_time(1e-5);
    Context context(gpu);
    gpu.enter(context);
    SoloTransport alone;
    double done = 0;
    const auto listen = [&](const MeasureProgress& p) { done = p.share; };
    const Profile profile =
        measure(graph, context, alone, {.microbatches = 2, .budget_s = 0.2, .progress = listen});
    EXPECT_GT(done, 0.8);
    EXPECT_LT(done, 1);
    const auto near = [](double a, double b) { return std::abs(a - b) < 0.01 * b; };
    const NodeCost& conv = profile.nodes[size_t(graph.find("conv2"))].cost;
    const double step_s = one_device_step_s(profile, 2), host_s = 4 * profile.overhead_s;
    return near(conv.forward_s, 2e-3) && near(conv.backward_input_s, 3e-3) &&
           near(conv.backward_weight_s, 1e-3) && near(step_s - host_s, 2 * action_s + update_s) &&
           step_s < 2 * (2 * action_s + update_s);
  }));
}

}  // namespace
}  // namespace antichain::test
