// The one entry to planning: objectives by name, the step beside the plan, memory as a hard limit.
#include "pipeline/planning/planning.h"

#include <gtest/gtest.h>

#include "partition/planners/planner.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

const NodeCost cost = {
    .forward_s = 1, .backward_input_s = 2, .output_bytes = 10, .param_bytes = 100, .stash_bytes = 7};

PlanOptions options(int stages, const std::string& objective) {
  return {
      .stages = stages, .cluster = one_link({.bytes_per_s = 100}), .objective = objective, .microbatches = 6};
}

// antichain may choose another of the best plans, with a shorter step.
TEST(PlanNetwork, LeavesPlansByBottleneckAsTheyAreAndAddsTheirStep) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const Profile network = random_network(random, 12);
    for (const char* objective : {"compute", "compute-or-transfer"})
      for (const char* method : {"antichain", "uniform", "block", "pipedream", "data-parallel"}) {
        const PlanOptions o = options(3, objective);
        const Plan own = planner(method)(network, o),
                   plan = plan_network(network, o, method, Policy::one_f_one_b);
        if (std::string(method) == "antichain")
          EXPECT_LE(plan.step_s, step_s(network, own, Policy::one_f_one_b, 6, o.cluster));
        else
          EXPECT_EQ(plan_hash(plan), plan_hash(own));
        EXPECT_EQ(plan.objective, objective);
        EXPECT_EQ(plan.bottleneck_s, own.bottleneck_s);
        EXPECT_EQ(plan.lower_bound_s, own.lower_bound_s);
        const Schedule schedule = make_schedule(network, plan, Policy::one_f_one_b, 6);
        EXPECT_EQ(plan.step_s, simulate(schedule, plan, network, o.cluster).step_s);
      }
  }
}

TEST(PlanNetwork, JudgesAnotherMethodsPlanByItsStep) {
  const Profile network = chain(9, cost);
  for (const char* method : {"uniform", "block", "data-parallel"}) {
    const Plan plan = plan_network(network, options(3, "makespan"), method, Policy::gpipe);
    const Plan own = planner(method)(network, options(3, "compute-or-transfer"));
    EXPECT_EQ(plan.stages.size(), own.stages.size());
    EXPECT_EQ(plan.objective, "makespan");
    EXPECT_EQ(plan.objective_s(), plan.step_s);
    EXPECT_GT(plan.lower_bound_s, 0);
    EXPECT_LE(plan.lower_bound_s, plan.step_s);
    if (std::string(method) == "data-parallel") continue;  // it has replicas, the next has none
    EXPECT_LE(plan_network(network, options(3, "makespan"), "antichain", Policy::gpipe).step_s, plan.step_s);
  }
}

TEST(PlanNetwork, RefusesWhatItDoesNotKnow) {
  const Profile network = chain(4, cost);
  expect_error([&] { plan_network(network, options(2, "speed"), "antichain", Policy::one_f_one_b); },
               {"\"speed\""});
  try {
    plan_network(network, options(2, "speed"), "antichain", Policy::one_f_one_b);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const std::string& name : objective_names())
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
  }
  expect_error([&] { plan_network(network, options(2, "makespan"), "guess", Policy::one_f_one_b); },
               {"\"guess\""});
  expect_error([&] { plan_network(network, options(2, "compute"), "antichain", Policy::forward_only); },
               {"forward-only", "no backwards"});
  for (const std::string& objective : objective_names()) {
    expect_error([&] { plan_network(network, options(9, objective), "antichain", Policy::one_f_one_b); },
                 {"9 stages", "4 nodes"});
    expect_error([&] { plan_network(network, options(7, objective), "data-parallel", Policy::one_f_one_b); },
                 {"7 replicas", "6 micro-batches"});
  }
}

// Of 4 equal nodes in 2 stages the first stage has 2 micro-batches in flight, with GPipe all 6.
TEST(PlanNetwork, MemoryIsAHardLimitForEveryMethod) {
  const Profile network = chain(4, cost);
  const auto needed = [](int in_flight) { return 3 * 200 + in_flight * 2 * 7; };
  for (const auto& [policy, in_flight] : {std::pair(Policy::one_f_one_b, 2), std::pair(Policy::gpipe, 6)})
    for (const std::string& objective : objective_names())
      for (const char* method : {"uniform", "antichain"}) {
        PlanOptions o = options(2, objective);
        o.cluster = equal_devices(2, {}, needed(in_flight));
        const Plan plan = plan_network(network, o, method, policy);
        EXPECT_EQ(plan.stages[0].memory_bytes, needed(in_flight));
        o.cluster = equal_devices(2, {}, needed(in_flight) - 1);
        const std::string bytes = fmt::format("{} bytes", needed(in_flight));
        if (std::string(method) == "uniform")
          expect_error([&] { plan_network(network, o, method, policy); },
                       {"stage 0", "uniform", bytes, fmt::format("has {}", needed(in_flight) - 1)});
        else
          expect_error([&] { plan_network(network, o, method, policy); }, {"does not fit the memory"});
      }
}

// The second stage is the one that does not fit, and the first needs even more on its larger device.
TEST(PlanNetwork, SaysTheSmallestMemoryThatWouldDoForTheSplit) {
  Profile network = chain(4, cost);
  network.nodes[2].cost.param_bytes = 1000;
  PlanOptions o = options(2, "compute");
  o.cluster = equal_devices(2, {}, 10'000);
  o.cluster.devices[1].memory_bytes = 500;
  expect_error([&] { plan_network(network, o, "uniform", Policy::one_f_one_b); },
               {"stage 1", "needs 614 bytes", "has 500", "3328 bytes on each device"});
}

}  // namespace
}  // namespace antichain::test
