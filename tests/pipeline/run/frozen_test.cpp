// Where parameters are frozen, the others learn what they learn otherwise, bit by bit, and nothing is
// computed, sent, kept or planned for those.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "framework/freeze.h"
#include "framework/name_pattern.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "pipeline/program/program.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain::test {
namespace {

// Each is a part of every_edge: all below a head, some in the middle, and one of two of a node.
const std::vector<std::vector<std::string>> choices = {
    {"stem*", "narrow.*", "wide.*", "norm.*", "conv.*"},
    {"conv.weight", "norm.*"},
    {"stem.norm.*", "wide.weight", "narrow.bias", "aux.fc.bias"},
};

bool is_frozen(const std::vector<std::string>& patterns, const std::string& name) {
  NamePatterns all(patterns);
  return all.find(name) >= 0;
}

TrainingCase one_step() {
  return {.steps = 1, .optimiser = std::make_shared<Sgd>(SgdOptions{.momentum = 0.9f, .weight_decay = 0.1f})};
}

TrainingRun train(const TrainingCase& c, int ranks) {
  return train_on_threads(c, ranks, by_antichains, by_policy(Policy::one_f_one_b));
}

Graph lowered(const std::vector<std::string>& patterns) {
  register_cpu_backend();
  return lower(freeze_matching(every_edge({.microbatch = 2}), patterns), backend("cpu"));
}

TEST(Frozen, OthersLearnTheSameBitsAsWithoutIt) {
  const Graph graph = every_edge({.microbatch = 2});
  const TrainingRun all = train(one_step(), 1);
  TrainingCase rests = one_step();
  rests.rate = 0;
  const TrainingRun before = train(rests, 1);
  for (const auto& patterns : choices)
    for (const int ranks : {1, 3}) {
      TrainingCase c = one_step();
      c.freeze = patterns;
      const TrainingRun run = train(c, ranks);
      EXPECT_EQ(run.losses, all.losses);
      for (const Node& node : graph) {
        for (const ParamSpec& param : node.signature.params) {
          const std::string name = full_name(node, param);
          const TrainingRun& as = is_frozen(patterns, name) ? before : all;
          EXPECT_TRUE(run.weights.find(name)->values == as.weights.find(name)->values) << name;
        }
        for (const ParamSpec& buffer : node.signature.buffers) {  // statistics are those of the batch
          const std::string name = full_name(node, buffer);
          EXPECT_TRUE(run.weights.find(name)->values == all.weights.find(name)->values) << name;
        }
      }
    }
}

TEST(Frozen, NothingBelowTheLowestTrainedNodeSendsGradients) {
  const Graph whole = lowered({}), graph = lowered(choices[0]);
  EXPECT_NE(whole.hash(), graph.hash());
  for (const Node& node : graph)
    EXPECT_EQ(graph.needs_gradient(graph.find(node.name)),
              std::set<std::string>({"aux.fc", "fc"}).contains(node.name))
        << node.name;
  const Profile profile = priced_by_flops(unpriced(graph, "cpu"));
  int gradients = 0, activations = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Plan plan = at_random(seed)(profile, 4);
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 6);
    for (const auto& rank : schedule.ranks)
      for (const Action& a : rank) {
        if (a.verb != Verb::send) continue;
        a.message.flow == Flow::gradient ? ++gradients : ++activations;
        if (a.message.flow == Flow::gradient) {
          EXPECT_TRUE(graph.needs_gradient(a.message.tensor));
        }
      }
  }
  EXPECT_GT(activations, 10 * gradients);
}

TEST(Frozen, ParametersHaveNeitherGradientsNorSlotsNorKeptActivations) {
  const Sgd sgd({});
  const Graph whole = lowered({}), graph = lowered(choices[0]);
  const Profile all = unpriced(whole, "cpu"), some = unpriced(graph, "cpu");
  int64_t frozen = 0;
  for (size_t n = 0; n < some.nodes.size(); ++n) {
    const NodeCost &with = all.nodes[n].cost, &cost = some.nodes[n].cost;
    EXPECT_EQ(cost.param_bytes + cost.frozen_bytes, with.param_bytes + with.frozen_bytes);
    EXPECT_EQ(cost.slot_bytes(), cost.param_bytes);
    frozen += cost.frozen_bytes;
    const bool learns = graph.has_backward(NodeId(n));
    if (!learns) {
      EXPECT_EQ(cost.param_bytes, 0);
    }
    if (!learns && whole[NodeId(n)].signature.statistics.empty()) {
      EXPECT_EQ(cost.stash_bytes, 0);
    }
  }
  EXPECT_GT(frozen, 0);
  const int stem = graph.find("stem");
  EXPECT_EQ(profile_from_json(to_json(some), "some").nodes[size_t(stem)].cost.frozen_bytes,
            some.nodes[size_t(stem)].cost.frozen_bytes);
  const auto need = [&](const Graph& of, const Profile& profile) {
    const Plan plan = at_random(1)(profile, 1);
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 4);
    return step_need(of, sgd, profile, plan, schedule, 0);
  };
  const MemoryNeed one = need(whole, all), other = need(graph, some);
  EXPECT_EQ(one.step.held() - other.step.held(), 2 * frozen);  // gradients and momentum
  EXPECT_LT(other.step.activations(), one.step.activations());
}

// The all-reduce has other buckets, but the same order.
TEST(Frozen, OthersLearnTheSameBitsOnReplicas) {
  for (unsigned seed = 0; seed < 3; ++seed) {  // of the cut; some first stages have no weights left
    const auto on_replicas = [&](const TrainingCase& c) {
      const auto plan = [&](const Profile& profile, int) {
        return replicated(at_random(seed)(profile, 2), {2, 2});
      };
      return train_on_threads(c, 4, plan, by_policy(Policy::one_f_one_b));
    };
    TrainingCase c = one_step();
    const TrainingRun all = on_replicas(c);
    for (const auto& patterns : choices) {
      c.freeze = patterns;
      for (const NamedTensor& tensor : on_replicas(c).weights)
        if (!is_frozen(patterns, tensor.name)) {
          EXPECT_TRUE(tensor.values == all.weights.find(tensor.name)->values) << tensor.name;
        }
    }
  }
}

TEST(Frozen, CheckpointsHaveNoSlotsOfThemAndGoOn) {
  const TemporaryFolder folder;
  TrainingCase c{.microbatches = 4, .steps = 2, .epochs = 2, .freeze = choices[2]};
  const TrainingRun whole = train(c, 1);
  c.checkpoint = folder.str() + "/run";
  std::filesystem::create_directory(c.checkpoint);
  c.until = 3;
  train(c, 2);
  int slots = 0, weights = 0;
  for (const auto& [name, tensor] : checkpoint_contents(CheckpointFolder(c.checkpoint).list().at(0))) {
    const size_t slash = name.find('/');
    slash == std::string::npos ? ++weights : ++slots;
    if (slash != std::string::npos) {
      EXPECT_FALSE(is_frozen(c.freeze, name.substr(slash + 1))) << name;
    }
  }
  EXPECT_GT(weights, slots);
  c.until = 0;
  const TrainingRun rest = train(c, 3);
  EXPECT_EQ(rest.first_step, 3);
  EXPECT_EQ(rest.state, whole.state);
}

}  // namespace
}  // namespace antichain::test
