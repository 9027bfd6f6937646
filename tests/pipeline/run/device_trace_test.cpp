// A step on a device tells of itself, on stand-ins (fake_gpu.h): stamps and traces have the device's times,
// ranges have the schedule's labels, and samples are drawn and copied in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "framework/cuda/resources.h"
#include "framework/error.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/transport/copies_between.h"

// The test is NVTX's profiler, linked: NVTX asks this pointer for functions to call.
extern "C" int (*InitializeInjectionNvtx2_fnptr)(const void* (*table_of)(uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

namespace {

// This is what NVTX was told.
std::mutex ranges_mutex;
std::vector<std::string> ranges;  // labels; "" ends the innermost
void note_range(std::string label) {
  std::lock_guard lock(ranges_mutex);
  ranges.push_back(std::move(label));
}
int push_range(const char* label) {
  note_range(label);
  return 0;
}
int pop_range() {
  note_range("");
  return 0;
}
int inject(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned count = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count)) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push_range);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop_range);
  return 1;
}

}  // namespace

int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(uint32_t)) = inject;

namespace antichain::test {
namespace {

using Clock = std::chrono::steady_clock;
double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// On a machine that does other things, too, any thread may stand still between two readings of the clock.
// What is wrong never comes out right, so one of some attempts has to.
bool in_one_of_20(const std::function<bool()>& attempt) {
  for (int i = 0; i < 20; ++i)
    if (attempt()) return true;
  return false;
}

// The beginning and the end of this work are known. Stamps lie around it, although the host has gone on.
TEST(Stamps, AreTheDevicesTimes) {
  fake_cuda::reset(1);
  const FakeGpu& gpu = FakeGpu::the();
  const Context context(gpu);
  const auto step = cuda::make_step_stream(context);
  const auto attempt = [&](bool exactly) {
    step->tie_clocks(exactly);
    std::vector<double> real_s(6), stamps_s;
    std::vector<Stamp> stamps;
    for (int i = 0; i < 3; ++i) {
      stamps.push_back(step->stamp());
      fake_cuda::launch(cuda::stream_of(context), [&real_s, i] {
        real_s[size_t(2 * i)] = now_s();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        real_s[size_t(2 * i + 1)] = now_s();
      });
      stamps.push_back(step->stamp());
    }
    const double launched_s = now_s();
    step->wait();
    for (const Stamp& stamp : stamps) stamps_s.push_back(step->at_s(stamp));
    EXPECT_TRUE(std::ranges::is_sorted(stamps_s));
    bool near = launched_s < real_s[0] + 5e-3;  // the host did not wait
    for (size_t i = 0; i < 6; ++i) near = near && std::abs(stamps_s[i] - real_s[i]) < 2e-3;
    for (size_t i = 0; i < 6; i += 2)
      EXPECT_GE(stamps_s[i + 1] - stamps_s[i], 10e-3 - 1e-5);  // float32 milliseconds
    return near;
  };
  EXPECT_TRUE(in_one_of_20([&] { return attempt(true); }));
  EXPECT_TRUE(in_one_of_20([&] { return attempt(false); }));
}

// This source gives grey images of class 0. What it is asked for stands between the ranges.
class Watched : public BatchSource {
 public:
  static constexpr int next = 1000;
  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    if (microbatch == fails_at) throw Error("no such sample");
    std::fill_n(out.raw(), out.bytes(), std::byte(0));
    if (out.dtype() == DType::f32) std::fill_n(out.data<float>(), out.elements(), 0.5f);
    note_range("fill " + std::string(input) + " " + std::to_string(microbatch));
  }
  bool expects_more() const override { return true; }
  void fill_next(std::string_view input, int, const Tensor& out) override { fill(input, next, out); }
  bool is_expected() const override { return expected; }

  bool expected = true;
  int fails_at = -1;
};

// Says for each copy to the device how much had been launched before what it waits for.
class RecordingCopies : public CopiesBetween {
 public:
  RecordingCopies(std::unique_ptr<CopyStream> copies, std::vector<int>& after)
      : CopiesBetween(std::move(copies)), after_(after) {}
  Moment computed() override {
    const Moment moment = copies_->computed();
    moments_.push_back({moment, fake_cuda::launched()});  // kept, so that none has another one's address
    return moment;
  }
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override {
    for (const auto& [moment, launched] : moments_)
      if (moment == after) after_.push_back(launched);
    return copies_->to_device(host, to, after);
  }

 private:
  std::vector<int>& after_;
  std::vector<std::pair<Moment, int>> moments_;
};

// In evaluation nothing comes behind the last forward, and the next batch's first samples go where that one's
// may be.
TEST(DeviceStep, EvaluatesBeforeTheNextBatchComes) {
  FakeGpu& gpu = FakeGpu::the();
  std::vector<int> after;
  gpu.around_copies = [&](std::unique_ptr<CopyStream> copies) {
    return std::make_unique<RecordingCopies>(std::move(copies), after);
  };
  DeviceRank device("resnet20", 2, 3, Policy::forward_only);
  SoloTransport alone;
  const auto runner = device.runner(alone, Mode::evaluate);
  gpu.around_copies = nullptr;
  Watched source;
  runner->run({.batch = 6}, source);
  ASSERT_EQ(after.size(), 2u * 4);  // images and labels of three micro-batches and of the next batch's first
  EXPECT_EQ(after[7], fake_cuda::launched());
  EXPECT_LT(after[5], after[7]);
}

// OneDevice is a training of ResNet-20 on the fake device, which computes late.
struct OneDevice : DeviceRank {
  OneDevice() : DeviceRank((fake_cuda::reset(2), "resnet20"), 4, 3) {}
  SoloTransport alone;
  const std::unique_ptr<StageRunner> runner = DeviceRank::runner(alone);
};

struct Traced {
  StepResult result;
  TimeSheet sheet;
  double wall_s = 0;
  std::vector<std::string> ranges;
  Schedule schedule;
};

Traced traced_step(Watched source = {}) {
  OneDevice device;
  StageRunner& runner = *device.runner;
  Traced traced{.schedule = device.schedule};
  runner.set_time_sheet(&traced.sheet);
  runner.run({.batch = 12}, source);
  {
    std::lock_guard lock(ranges_mutex);
    ranges.clear();
  }
  traced.sheet = {};
  traced.sheet.enter(Spent::other);
  const double begin_s = now_s();
  traced.result = runner.run({.batch = 12, .traced = true}, source);
  traced.wall_s = now_s() - begin_s;
  traced.sheet.stop();
  std::lock_guard lock(ranges_mutex);
  traced.ranges = ranges;
  return traced;
}

TEST(DeviceTrace, HasTheDevicesTimes) {
  EXPECT_TRUE(in_one_of_20([] {
    const Traced t = traced_step();
    const std::vector<Action>& actions = t.schedule.ranks[0];
    EXPECT_EQ(t.result.events.size(), actions.size());
    // This is the step's beginning, but for what tying the clocks is off by.
    const double first_s = t.result.events[0].start_s;
    double computing_s = 0, before_s = first_s;
    for (size_t i = 0; i < t.result.events.size(); ++i) {
      const Event& e = t.result.events[i];
      EXPECT_EQ(print(e.action), print(actions[i]));
      EXPECT_LE(before_s, e.start_s + 1e-6) << i;  // float32 milliseconds
      EXPECT_LE(e.start_s, e.end_s) << i;
      before_s = e.end_s;
      if (e.action.verb != Verb::load) computing_s += e.end_s - e.start_s;
    }
    // Launching takes next to nothing: times of the host would leave most of the step to the wait at its end.
    return first_s > -5e-3 && before_s < t.wall_s + 5e-3 && computing_s > 0.6 * (before_s - first_s) &&
           computing_s > 0.4 * t.wall_s && t.sheet.computing_s() > 0.4 * t.wall_s &&
           std::abs(t.sheet.total_s() - t.wall_s) < 0.1 * t.wall_s;
  }));
}

// Returns the losses of four steps, of which so many are under way. `begun` is called when one has begun.
std::vector<double> losses_of(
    StageRunner& runner, int at_once, const std::function<void()>& begun = [] {}) {
  Watched source;
  std::vector<double> losses;
  for (int step = 0; step < 4 + at_once - 1; ++step) {
    if (step < 4) runner.begin({.step = uint64_t(step), .batch = 12, .rate = 0.1f}, source);
    begun();
    if (step >= at_once - 1) losses.push_back(runner.finish().loss);
  }
  return losses;
}

// This holds even where the second has ended before anyone looks at the first.
TEST(DeviceStep, OfTwoStepsUnderWayEachHasItsOwnLosses) {
  OneDevice device, fast, slow_host;
  const std::vector<double> one_by_one = losses_of(*device.runner, 1);
  EXPECT_NE(one_by_one[0], one_by_one[1]);
  EXPECT_EQ(losses_of(*fast.runner, 2), one_by_one);
  EXPECT_EQ(losses_of(*slow_host.runner, 2, [] { fake_cuda::drain(); }), one_by_one);
}

TEST(DeviceTrace, OfTwoStepsUnderWayHasTheTimesOfBoth) {
  EXPECT_TRUE(in_one_of_20([] {
    OneDevice device;
    EXPECT_EQ(device.runner->steps_at_once(), 2);
    TimeSheet sheet;
    device.runner->set_time_sheet(&sheet);
    sheet.enter(Spent::other);
    const double begin_s = now_s();
    losses_of(*device.runner, 2);
    const double wall_s = now_s() - begin_s;
    sheet.stop();
    return sheet.computing_s() > 0.4 * wall_s && std::abs(sheet.total_s() - wall_s) < 0.1 * wall_s;
  }));
}

std::vector<std::string> filled(const Traced& t) {
  std::vector<std::string> images;
  for (const std::string& text : t.ranges)
    if (text.starts_with("fill images")) images.push_back(text.substr(12));
  return images;
}

// What was drawn ahead is of no use where the run goes on with another batch.
TEST(DeviceStep, DrawsTheFirstSamplesAgainWhereAnotherBatchComes) {
  EXPECT_EQ(filled(traced_step()), (std::vector<std::string>{"1", "2", "1000"}));
  Watched source;
  source.expected = false;
  EXPECT_EQ(filled(traced_step(source)), (std::vector<std::string>{"0", "1", "2", "1000"}));
}

TEST(DeviceStep, LetsGoOfNothingInUseWhenItFails) {
  Watched source;
  source.fails_at = 2;
  EXPECT_THROW(traced_step(source), Error);
  EXPECT_EQ(fake_cuda::freed_in_use(), 0);
}

// Each action has a range. The next micro-batch's samples are drawn when the work before has been started,
// and those of the step's first micro-batch were drawn in the step before.
TEST(DeviceTrace, RangesHaveTheSchedulesLabels) {
  const Traced t = traced_step();
  std::vector<std::string> labels, order;
  int open = 0;
  for (const std::string& text : t.ranges) {
    if (text.starts_with("fill")) {
      if (!text.starts_with("fill labels")) order.push_back(text);
      continue;
    }
    open += text.empty() ? -1 : 1;
    EXPECT_TRUE(open == 0 || open == 1);
    if (text.empty()) continue;
    labels.push_back(text);
    order.push_back(text);
  }
  EXPECT_EQ(open, 0);
  std::vector<std::string> right;
  for (const Action& a : t.schedule.ranks[0]) right.push_back(print(a));
  EXPECT_EQ(labels, right);
  EXPECT_EQ(order,
            (std::vector<std::string>{"0L0", "0F0", "fill images 1", "0B0", "0L1", "0F1", "fill images 2",
                                      "0B1", "0L2", "0F2", "0B2", "0U", "fill images 1000"}));
}

}  // namespace
}  // namespace antichain::test
