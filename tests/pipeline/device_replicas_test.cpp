// Stages with replicas on devices with memory of their own, on stand-ins (fake_gpu.h, fake_ipc.h, fake_nccl.cpp): the bits are
// those of CPU ranks with the same plan, over every transport; the sum over the replicas waits for what it needs, and no more.
// Nothing here runs on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "data/raw_images.h"
#include "framework/cuda/resources.h"
#include "framework/error.h"
#include "framework/random.h"
#include "models/model.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/ordered_transport.h"
#include "pipeline/peer_transport.h"
#include "pipeline/runner.h"
#include "pipeline/staged_transport.h"
#include "pipeline/thread_transport.h"
#include "pipeline/transport_over.h"
#include "tests/expect_error.h"
#include "tests/pipeline/copies_between.h"
#include "tests/pipeline/expect_same.h"
#include "tests/pipeline/fake_cuda.h"
#include "tests/pipeline/fake_gpu.h"
#include "tests/pipeline/fake_ipc.h"
#include "tests/pipeline/networks.h"
#include "tests/pipeline/peers_between.h"
#include "tests/pipeline/training_run.h"

namespace antichain::testing {
namespace {

using Counts = std::vector<int>;  // of replicas, by stage
using MakeTransport = std::function<std::unique_ptr<Transport>(Transport& job, const Context&)>;

int sum(const Counts& replicas) { return std::accumulate(replicas.begin(), replicas.end(), 0); }

Plan cut(const Profile& network, const Counts& replicas) {
  std::mt19937 random(3);
  return test::replicated(test::random_plan(random, network, int(replicas.size())), replicas);
}
MakePlan cut_for(const Counts& replicas) {
  return [replicas](const Profile& network, int) { return cut(network, replicas); };
}

TrainingRun on_the_cpu(const TrainingCase& c, const Counts& replicas) {
  return train_on_threads(c, sum(replicas), cut_for(replicas), by_policy(Policy::one_f_one_b));
}
TrainingRun on_fake_gpu(TrainingCase c, const Counts& replicas, unsigned seed, const MakeTransport& over) {
  fake_cuda::reset(seed);
  c.device = FakeGpu::the().name();
  c.over = over;
  return on_the_cpu(c, replicas);
}

enum class Way { staged, peers, nccl };
const char* name_of(Way way) {
  return way == Way::staged ? "ByHostMemory" : way == Way::peers ? "BetweenDevices" : "OverNccl";
}

std::unique_ptr<Transport> over(Way way, Transport& job, const Context& context) {
  if (way == Way::staged) return make_staged_transport(job, device_streams("fake_gpu")->copies(context));
  if (way == Way::nccl) return make_ordered_transport(job, cuda::make_nccl_stream(context, job));
  auto peers = FakeGpu::the().make_peers(context);
  const PeerPairs pairs = find_pairs(job, *peers);
  return make_peer_transport(job, std::move(peers), cuda::make_copy_stream(context), pairs);
}

class DeviceReplicas : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override { fake_cuda::ipc({.threads_are_processes = GetParam() == Way::peers}); }
  void TearDown() override {
    FakeGpu& gpu = FakeGpu::the();
    gpu.around_copies = nullptr;
    gpu.around_peers = nullptr;
    gpu.takes_s = nullptr;
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::ipc({});
    fake_cuda::reset(1);
    ::unsetenv("ANTICHAIN_FAULT");
  }
  static MakeTransport transport() {
    return [](Transport& job, const Context& context) { return over(GetParam(), job, context); };
  }
};
INSTANTIATE_TEST_SUITE_P(, DeviceReplicas, ::testing::Values(Way::staged, Way::peers, Way::nccl),
                         [](const auto& info) { return name_of(info.param); });

struct ReplicaCase {
  Counts replicas;
  int microbatches = 4;
};

// Each seed has the device late with other things. Training and evaluation take turns.
TEST_P(DeviceReplicas, TrainToTheBitsOfTheCpu) {
  for (const auto& [replicas, microbatches] :
       {ReplicaCase{{2}}, {{2, 1}}, {{1, 2}, 5}, {{2, 2}}, {{3, 1}, 5}}) {
    TrainingCase c{.model = "resnet20", .microbatches = microbatches, .steps = 3, .epoch = true};
    const TrainingRun cpu = on_the_cpu(c, replicas);
    for (unsigned seed = 1; seed <= 3; ++seed) {
      c.device_augments = seed != 3;
      expect_same(on_fake_gpu(c, replicas, seed, transport()), cpu,
                  std::to_string(sum(replicas)) + " ranks, seed " + std::to_string(seed));
    }
  }
}

}  // namespace
}  // namespace antichain::testing
