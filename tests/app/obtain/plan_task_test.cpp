// Planning is told what to do by several sources. These tests say which of them counts, and what contradicts.
#include "app/obtain/plan_task.h"

#include <gtest/gtest.h>

#include "pipeline/schedule/policy.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

constexpr const char* cluster_text = R"({"format": "antichain cluster 1",
  "within_node": {"bytes_per_s": 2e10, "latency_us": 3},
  "between_nodes": {"bytes_per_s": 1e6, "latency_us": 20},
  "nodes": [{"devices": [{"speed": 1, "memory_bytes": 5000}, {"speed": 2, "memory_bytes": 0}]},
            {"devices": [{"speed": 4, "memory_bytes": 7000}]}]})";

// A chain of five nodes, a … e, after an input.
Profile chain() {
  Profile profile{.model = "chain", .link = {.bytes_per_s = 4e9, .latency_s = 2.5e-6}};
  profile.nodes.push_back({.name = "image", .op = "input", .role = Role::input});
  for (const char name : {'a', 'b', 'c', 'd', 'e'})
    profile.nodes.push_back({.name = std::string(1, name),
                             .op = "relu",
                             .inputs = {int(profile.nodes.size()) - 1},
                             .needs_gradient = true,
                             .cost = {.forward_s = 1e-3, .output_bytes = 100, .keeps_output = true}});
  return profile;
}

PlanTask task_of(const PlanningOptions& planning, const GivenFiles& given = {},
                 const Profile& profile = chain(), const std::string& schedule = "1f1b", int ranks = 1) {
  return plan_task(planning, given, profile, {.schedule = schedule}, 8, ranks);
}

TEST(PlanTask, TheLinkSaysWhereItComesFrom) {
  Profile unknown = chain();
  unknown.link = {};
  EXPECT_EQ(task_of({}, {}, unknown).link, "free (the profile has none)");
  EXPECT_EQ(task_of({}).link, "4 GB/s, latency 2.5 us (measured with the profile)");
  EXPECT_EQ(task_of({.link_bytes_per_s = 5e7}).link,
            "50 MB/s, latency 2.5 us (bandwidth as given; else measured with the profile)");
  EXPECT_EQ(task_of({.link_bytes_per_s = 0, .link_latency_s = 1e-3}).link,
            "infinitely fast, latency 1000 us (as given)");
  EXPECT_EQ(task_of({.link_bytes_per_s = 0, .link_latency_s = 0}).link, "free (as given)");
  const GivenFiles given{.cluster = cluster_text};
  EXPECT_EQ(task_of({.cluster_file = "c.json"}, given).link,
            "within a node 20 GB/s, latency 3 us; between nodes 1 MB/s, latency 20 us (of c.json)");
  EXPECT_EQ(
      task_of({.cluster_file = "c.json", .link_latency_s = 0}, given).link,
      "within a node 20 GB/s, latency 0 us; between nodes 1 MB/s, latency 0 us (latency as given; else of "
      "c.json)");
}

TEST(PlanTask, OptionsOverrideTheCluster) {
  const GivenFiles given{.cluster = cluster_text};
  const Cluster as_written = task_of({.cluster_file = "c.json"}, given).options.cluster;
  EXPECT_EQ(as_written.devices[0].memory_bytes, 5000);
  EXPECT_EQ(as_written.devices[2].speed, 4);
  const Cluster limited =
      task_of({.cluster_file = "c.json", .link_bytes_per_s = 1e9, .memory_bytes = 300}, given)
          .options.cluster;
  for (const Device& device : limited.devices) EXPECT_EQ(device.memory_bytes, 300);
  EXPECT_EQ(limited.within_node.bytes_per_s, 1e9);
  EXPECT_EQ(limited.between_nodes.bytes_per_s, 1e9);
  EXPECT_EQ(limited.between_nodes.latency_s, 20e-6);
  const Cluster unlimited = task_of({.cluster_file = "c.json", .memory_bytes = 0}, given).options.cluster;
  for (const Device& device : unlimited.devices) EXPECT_EQ(device.memory_bytes, 0);
}

TEST(PlanTask, HowManyStages) {
  const GivenFiles given{.cluster = cluster_text};
  EXPECT_EQ(task_of({}, {}, chain(), "1f1b", 4).options.stages, 4) << "one per rank";
  EXPECT_EQ(task_of({.cluster_file = "c.json"}, given, chain(), "1f1b", 4).options.stages, 3)
      << "one per device";
  EXPECT_EQ(task_of({.cluster_file = "c.json", .stages = 2}, given).options.stages, 2);
  EXPECT_EQ(task_of({.method = "handsplit", .cuts = "a,d"}).options.stages, 3);
  const PlanTask replicated = task_of({.replicas = "2,1,3", .memory_bytes = 1000});
  EXPECT_EQ(replicated.options.stages, 3);
  EXPECT_EQ(replicated.options.devices(), 6);
  EXPECT_EQ(replicated.options.cluster.devices.size(), 6u) << "as many with a limit as there is use for";
}

TEST(PlanTask, TheScheduleIsAPolicyOrOneFOneB) {
  EXPECT_EQ(task_of({}).policy, Policy::one_f_one_b);
  EXPECT_EQ(task_of({}, {}, chain(), "gpipe").policy, Policy::gpipe);
  EXPECT_EQ(task_of({}, {}, chain(), "some.schedule").policy, Policy::one_f_one_b);
}

TEST(PlanTask, TheScheduleSaysHowManyStagesARankHas) {
  EXPECT_EQ(task_of({}).options.chunks, 1);
  EXPECT_EQ(task_of({.stages = 2}, {}, chain(), "interleaved").options.chunks, 2);
  EXPECT_EQ(task_of({.stages = 2, .chunks = 3}, {}, chain(), "interleaved").options.chunks, 3);
  EXPECT_EQ(task_of({.stages = 2}, {}, chain(), "zb-v").options.chunks, 2);
  EXPECT_EQ(task_of({.stages = 2}, {}, chain(), "zb-v").options.stages, 2) << "the number of devices";
  EXPECT_EQ(task_of({.method = "handsplit", .cuts = "a,b,c"}, {}, chain(), "v-min").options.stages, 2);
  expect_error([] { task_of({.chunks = 3}, {}, chain(), "zb-v"); }, {"zb-v", "2 stages a rank", "3"});
  expect_error([] { task_of({.chunks = 1}, {}, chain(), "interleaved"); }, {"interleaved", "or more"});
  expect_error([] { task_of({.chunks = 2}); }, {"1f1b", "--chunks 2"});
}

TEST(PlanTask, CutsAreNamesOrAFile) {
  EXPECT_EQ(task_of({.method = "handsplit", .cuts = "b,c"}).options.cuts,
            (std::vector<std::string>{"b", "c"}));
  const GivenFiles given{.cuts = "# by hand\n2: b\n3: a d\n"};
  EXPECT_EQ(task_of({.stages = 3, .cuts = "my.cuts"}, given).options.cuts,
            (std::vector<std::string>{"a", "d"}));
  expect_error([&] { task_of({.stages = 4, .cuts = "my.cuts"}, given); }, {"4 stages", "2, 3"});
  EXPECT_EQ(task_of({.stages = 4, .at_most = true, .cuts = "my.cuts"}, given).options.cuts.size(), 2u);
  expect_error([] { parse_names("a,,b"); }, {"--cuts", "'a,,b'"});
  expect_error([] { check({.cuts = "a"}, "1f1b"); }, {"--cuts", "antichain", "handsplit"});
  EXPECT_NO_THROW(check({.cuts = "a"}, "1f1b", true)) << "some method of all looks at them";
  EXPECT_NO_THROW(check({.method = "handsplit", .cuts = "a"}, "1f1b"));
}

TEST(PlanTask, Replicas) {
  EXPECT_TRUE(parse_replicas("off").off());
  EXPECT_TRUE(parse_replicas("auto").automatic);
  EXPECT_EQ(parse_replicas("2,1,13").of_stage, (std::vector<int>{2, 1, 13}));
  for (const char* bad : {"", "on", "2,", ",2", "0", "-1", "2,x", "2 1", "1.5", "99999999999"})
    expect_error([&] { parse_replicas(bad); }, {"--replicas", std::string("'") + bad + "'"});
}

Plan plan_of(const Profile& profile, const PlanTask& task) { return obtain_plan({}, profile, task); }

// Five nodes of 100 bytes of weights, with Adam's slots, and as many of output. A replica of two needs 1000
// bytes for weights and gradients, 250 for the other's gradients, 500 for outputs, and 1000 for slots, or 500
// where they are shared out.
TEST(PlanTask, ReplicasShareOutTheOptimiserWhereThatFits) {
  Profile profile = chain();
  for (ProfileNode& node : profile.nodes)
    if (node.role != Role::input) node.cost.param_bytes = 100, node.cost.optimiser_bytes = 200;
  PlanningOptions planning{.stages = 2, .replicas = "auto", .memory_bytes = 2400};
  const auto sharded = [&] {
    const Plan plan = plan_of(profile, task_of(planning, {}, profile, "1f1b", 2));
    EXPECT_EQ(plan.shard_optimiser && !has_replicas(plan), false);
    return plan.shard_optimiser;
  };
  planning.shard_optimiser = "off";
  EXPECT_FALSE(sharded());
  planning.shard_optimiser = "on";
  planning.method = "data-parallel";
  EXPECT_TRUE(sharded());
  planning.shard_optimiser = "off";
  expect_error([&] { sharded(); }, {"2400"});
  planning.shard_optimiser = "auto";
  EXPECT_TRUE(sharded());
  const Plan plan = plan_of(profile, task_of(planning, {}, profile, "1f1b", 2));
  const Plan again = plan_from_json(to_json(plan, profile), "plan.json");
  EXPECT_TRUE(again.shard_optimiser);
  EXPECT_EQ(plan_hash(again), plan_hash(plan));
  planning.memory_bytes = -1;
  EXPECT_FALSE(sharded()) << "nothing limits memory";
}

// What a file says about times may be out of date.
TEST(PlanTask, AGivenPlanIsPricedAnew) {
  const Profile profile = chain();
  const auto edited = [&](const std::string& objective) {
    Plan plan = plan_of(profile, task_of({.stages = 2, .objective = objective, .link_bytes_per_s = 0}));
    plan.stages[0].nodes = {1};
    plan.stages[1].nodes = {2, 3, 4, 5};
    return plan;
  };
  const PlanningOptions planning{.plan_file = "plan.json", .objective = "compute", .link_bytes_per_s = 0};
  const GivenFiles given{.plan = to_json(edited("compute"), profile)};
  const Plan priced = obtain_plan(given, profile, task_of(planning, given));
  EXPECT_EQ(priced.stages[0].nodes, std::vector<int>{1});
  EXPECT_EQ(priced.method, "antichain") << "the file was written with these stages";
  EXPECT_NEAR(priced.bottleneck_s, 4e-3, 1e-12);  // rounded to whole ns, of which there are no parts here
  EXPECT_NEAR(priced.lower_bound_s, 3e-3, 1e-12) << "five nodes of 1 ms in two stages: 2 and 3";
  EXPECT_FALSE(priced.proved_optimal());
  EXPECT_EQ(priced.stages[1].memory_bytes, 400) << "four outputs of the one micro-batch in flight";
  EXPECT_GT(priced.step_s, 8 * 4e-3);

  PlanningOptions limited = planning;
  limited.memory_bytes = 399;
  expect_error([&] { obtain_plan(given, profile, task_of(limited, given)); },
               {"stage 0", "needs 400 bytes", "has 399", "this split needs 900 bytes"});
  PlanningOptions by_step = planning;
  by_step.objective = "makespan";
  const GivenFiles stepwise{.plan = to_json(edited("makespan"), profile)};
  const Plan stepped = obtain_plan(stepwise, profile, task_of(by_step, stepwise));
  EXPECT_EQ(stepped.objective, Objective::makespan);
  EXPECT_NEAR(stepped.lower_bound_s, plan_of(profile, task_of({.stages = 2, .link_bytes_per_s = 0})).step_s,
              1e-9)
      << "all cuts were tried; the file has whole nanoseconds";
  EXPECT_GT(stepped.gap(), 0);
  EXPECT_EQ(obtain_plan(given, profile, task_of(by_step, given)).lower_bound_s, 0)
      << "the file's bound is of the slowest stage";
}

// The fastest cut leaves one node to the first stage, and what the second one computes again takes more than
// the memory that its weights leave.
TEST(PlanTask, CutsFitTheMemoryThatRecomputationTakes) {
  Profile profile = chain();
  profile.nodes[1].cost.forward_s = 4e-3;
  for (size_t n = 1; n < profile.nodes.size(); ++n)
    profile.nodes[n].cost.param_bytes = 1000, profile.nodes[n].cost.output_bytes = 500;
  const GivenFiles all{.recompute = "all"};
  const auto planned = [&](const PlanningOptions& planning) {
    return obtain_plan(all, profile, task_of(planning, all, profile));
  };
  const Plan free = planned({.stages = 2}), limited = planned({.stages = 2, .memory_bytes = 13'000});
  EXPECT_EQ(free.stages[0].nodes, std::vector<int>{1});
  EXPECT_EQ(limited.stages[0].nodes, (std::vector<int>{1, 2}));
  EXPECT_EQ(limited.stages[1].recomputed, limited.stages[1].nodes);
  expect_error([&] { planned({.stages = 2, .memory_bytes = 9'500}); },
               {"no plan of chain was found that fits the memory of 2 devices"});
}

TEST(PlanTask, AGivenPlanNeedsItsDevices) {
  const Profile profile = chain();
  const PlanningOptions planning{.plan_file = "plan.json", .cluster_file = "c.json"};
  const GivenFiles given{.plan = to_json(plan_of(profile, task_of({.stages = 4})), profile),
                         .cluster = cluster_text};
  expect_error([&] { obtain_plan(given, profile, task_of(planning, given)); },
               {"device 3", "the cluster has only 3"});
}

}  // namespace
}  // namespace antichain
