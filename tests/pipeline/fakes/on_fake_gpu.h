// Cases of training, and single ranks, on devices of stand-ins (fake_gpu.h). The way of tensors is through
// host memory, or over NCCL (nccl_among.h).
#pragma once

#include <memory>

#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/staged_transport.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {

using MakeTransport = decltype(TrainingCase::over);

inline std::unique_ptr<Transport> staged(JobTransport& job, const Context& context) {
  return make_staged_transport(job, device_streams("fake_gpu")->copies(context));
}

// Returns the case on such devices. By the seed, some of what they do is late.
inline TrainingCase on_fake_gpu(TrainingCase c, unsigned seed = 1, const MakeTransport& over = staged) {
  fake_cuda::reset(seed);
  c.device = FakeGpu::the().name();
  c.over = over;
  return c;
}

// One rank, of one or several, that runs a network on such a device.
struct DeviceRank {
  Context context;
  const bool entered;
  const Graph graph;
  const Profile profile;
  const Plan plan;
  const Schedule schedule;
  RankModel model;

  DeviceRank(const std::string& name, int microbatch, int microbatches,
             const Policy& policy = Policy::one_f_one_b, const MakePlan& cut = at_random(1), int ranks = 1,
             int rank = 0)
      : context(FakeGpu::the(), 1, rank),
        entered((FakeGpu::the().enter(context), true)),
        graph(lower(network(name, {.microbatch = microbatch}), FakeGpu::the())),
        profile(priced_by_flops(unpriced(graph, FakeGpu::the().description()))),
        plan(cut(profile, ranks)),
        schedule(make_schedule(profile, plan, policy, microbatches)),
        model(graph, nodes_of_rank(plan, rank), context, 0) {}
  std::unique_ptr<StageRunner> runner(Transport& transport, Mode mode = Mode::train) {
    return std::make_unique<StageRunner>(model, profile, plan, schedule, mode, transport);
  }
};

}  // namespace antichain::test
