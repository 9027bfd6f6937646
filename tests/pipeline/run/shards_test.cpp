// Replicas that share out the optimiser's state learn the bits of those that do not, send as many bytes, and
// hold no more than their parts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/muon.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "partition/planners/planner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "pipeline/transport/transport_over.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain {
namespace {

using namespace test;
using Counts = std::vector<int>;  // of replicas, by stage

MakePlan shared_out(const Counts& replicas, bool shards) {
  return [=](const Profile& profile, int) {
    const PlanOptions options{.stages = int(replicas.size()), .cluster = one_link({.bytes_per_s = 1e9})};
    Plan plan = test::replicated(plan_antichain(profile, options), replicas);
    plan.shard_optimiser = shards;
    return plan;
  };
}

TrainingRun train(const TrainingCase& c, const Counts& replicas, bool shards) {
  return train_on_threads(c, std::reduce(replicas.begin(), replicas.end()), shared_out(replicas, shards),
                          by_policy(Policy::one_f_one_b));
}

std::shared_ptr<const Optimiser> optimiser_of(const std::string& name) {
  if (name == "sgd") return std::make_shared<Sgd>(SgdOptions{});
  const auto adamw = std::make_shared<AdamW>(AdamWOptions{});
  if (name == "adamw") return adamw;
  return std::make_shared<Averaged>(std::make_shared<Muon>(MuonOptions{}), 0.9);
}

struct ShardCase {
  const char* model;
  const char* optimiser;
  Counts replicas;
};
void PrintTo(const ShardCase& c, std::ostream* out) {
  *out << fmt::format("{} of {} on {}", c.optimiser, c.model, fmt::join(c.replicas, " + "));
}

TrainingCase training_of(const ShardCase& c) {
  TrainingCase training{.model = c.model, .microbatches = 5, .steps = 3, .rate = 0.01f, .epochs = 1};
  training.optimiser = optimiser_of(c.optimiser);
  training.clip_norm = 0.5;  // the first gradients are longer
  training.evaluate_every = 2;
  return training;
}

class ShardedReplicas : public ::testing::TestWithParam<ShardCase> {};

TEST_P(ShardedReplicas, LearnTheSameBits) {
  TrainingCase c = training_of(GetParam());
  for (const double clip_norm : {0.0, 0.5}) {
    c.clip_norm = clip_norm;
    const TrainingRun whole = train(c, GetParam().replicas, false),
                      sharded = train(c, GetParam().replicas, true);
    expect_same(whole, sharded, "sharded");
    EXPECT_EQ(whole.test_losses, sharded.test_losses) << "with averages, where there are any";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ShardedReplicas,
    ::testing::Values(ShardCase{"every_edge", "sgd", {2}}, ShardCase{"every_edge", "sgd", {3, 2}},
                      ShardCase{"every_edge", "sgd", {4}}, ShardCase{"every_edge", "adamw", {2}},
                      ShardCase{"every_edge", "adamw", {3}}, ShardCase{"every_edge", "adamw", {4}},
                      ShardCase{"every_edge", "adamw", {2, 2}}, ShardCase{"every_edge", "muon", {2}},
                      ShardCase{"every_edge", "muon", {3}}, ShardCase{"every_edge", "muon", {4}},
                      ShardCase{"every_edge", "muon", {2, 1}}, ShardCase{"every_edge", "muon", {2, 3}},
                      ShardCase{"tied", "adamw", {2}}, ShardCase{"tied", "adamw", {2, 2}},
                      ShardCase{"tied", "muon", {3, 3}}, ShardCase{"tied", "muon", {2, 3}},
                      ShardCase{"siamese", "adamw", {2, 2}}, ShardCase{"siamese", "muon", {3}},
                      ShardCase{"unrolled", "sgd", {2}}, ShardCase{"repeated", "adamw", {2, 2}},
                      ShardCase{"siamese", "adamw", {3, 1}}));

INSTANTIATE_TEST_SUITE_P(Large, ShardedReplicas,
                         ::testing::Values(ShardCase{"resnet20", "muon", {2, 2}},
                                           ShardCase{"gpt_nano", "adamw", {3}}));

// A CountingTransport counts the bytes that its rank sends.
class CountingTransport : public TransportOver {
 public:
  CountingTransport(Transport& below, std::atomic<int64_t>& bytes) : TransportOver(below), bytes_(bytes) {}
  void send(MessageKey key, int peer, Tensor tensor) override {
    bytes_ += tensor.bytes();
    below_.send(key, peer, std::move(tensor));
  }
  Ticket recv(MessageKey key, int peer, Tensor into) override { return below_.recv(key, peer, into); }
  void wait(Ticket ticket) override { below_.wait(ticket); }
  bool arrived(Ticket ticket) override { return below_.arrived(ticket); }
  void progress() override { below_.progress(); }
  void flush() override { below_.flush(); }
  void give_up() override { below_.give_up(); }

 private:
  std::atomic<int64_t>& bytes_;
};

TEST(ShardedReplicasOfAStage, SendAsManyBytesAsOthers) {
  for (const char* optimiser : {"adamw", "muon"})
    for (const int replicas : {2, 3, 4}) {
      std::map<bool, int64_t> sent;
      for (const bool shards : {false, true}) {
        std::atomic<int64_t> bytes = 0;
        TrainingCase c{.model = "every_edge", .microbatches = replicas, .steps = 2};
        c.optimiser = optimiser_of(optimiser);
        if (const Averaged* both = averaged(*c.optimiser)) c.optimiser = both->of;  // no test of averages
        c.over = [&](JobTransport& job, const Context&) {
          return std::make_unique<CountingTransport>(job, bytes);
        };
        train(c, {replicas}, shards);
        sent[shards] = bytes;
      }
      EXPECT_NEAR(double(sent[true]), double(sent[false]), 0.01 * double(sent[false]))
          << optimiser << " on " << replicas;
    }
}

// Slots are shared out evenly, but for weights that are whole or of several nodes.
TEST(ShardsOfState, AreAnEqualPartAndTheLargestPieceAtMost) {
  register_cpu_backend();
  for (const char* model : {"every_edge", "tied", "resnet20"})
    for (const char* name : {"sgd", "adamw", "muon"})
      for (const int replicas : {2, 3, 4}) {
        const auto optimiser = optimiser_of(name);
        const Backend& device = backend("cpu");
        const Graph graph = lower(network(model, {.microbatch = 1}), device, Precision::float32);
        const Profile profile = priced_by_flops(unpriced(graph, device.description(), *optimiser));
        const Plan plan = shared_out({replicas}, true)(profile, replicas);
        const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, replicas);
        int64_t all = 0, largest = 0, held = 0;  // `all` is counted by each rank
        for (int rank = 0; rank < replicas; ++rank) {
          Context context(device, 1, 0);
          const Shards shards = shards_of(graph, *optimiser, profile, plan, schedule, rank);
          const RankModel sharded(graph, plan.stages[0].nodes, context, 0, optimiser, shards);
          int64_t own = 0;
          sharded.for_each_trained([&](const ParamUse& use, const std::string&, const auto& shares) {
            for (const Tensor& slot : sharded[use.node].slots[size_t(use.param)]) own += slot.bytes();
            const ParamSpec& spec = graph[use.node].signature.params[size_t(use.param)];
            const int64_t bytes = int64_t(slots_of(*optimiser, spec).size()) *
                                  sharded[use.node].params[size_t(use.param)].bytes();
            all += bytes;
            if (shares.size() <= 1) largest = std::max(largest, bytes);
          });
          held += own;
          const auto slots = [&](bool shards) {
            return step_need(graph, *optimiser, profile, shared_out({replicas}, shards)(profile, replicas),
                             schedule, rank)
                .step.optimiser;
          };
          EXPECT_EQ(slots(false) - slots(true), all / (rank + 1) - own) << "as is predicted";
          EXPECT_LE(own, all / (rank + 1) / replicas + largest) << model << " " << name << " " << replicas;
        }
        EXPECT_EQ(held, all / replicas) << "each slot is somewhere, once: " << model << " " << name;
      }
}

TEST(ShardedCheckpoints, AreThoseOfOthersAndGoOnAnywhere) {
  for (const char* optimiser : {"adamw", "muon"}) {
    TrainingCase c{.model = "every_edge", .microbatches = 4, .steps = 3, .rate = 0.01f, .epochs = 2};
    c.optimiser = optimiser_of(optimiser);
    std::map<bool, std::map<std::string, NamedTensor>> states;
    std::map<bool, TrainingRun> rest;
    for (const bool shards : {false, true}) {
      const TemporaryFolder folder;
      c.checkpoint = folder.str();
      c.until = 4;
      train(c, {2, 1}, shards);
      const std::string saved = CheckpointFolder(c.checkpoint).of_step(4);
      EXPECT_EQ(verify_checkpoint(saved).files.size(), 2u) << "one a stage";
      states[shards] = checkpoint_contents(saved);
      c.until = 0;
      rest[shards] = train(c, {3}, !shards);
      EXPECT_EQ(rest[shards].first_step, 4);
    }
    EXPECT_TRUE(states[false] == states[true]) << optimiser;
    EXPECT_EQ(rest[false].state, rest[true].state) << optimiser;
    EXPECT_EQ(rest[false].losses, rest[true].losses) << optimiser;
  }
}

}  // namespace
}  // namespace antichain
