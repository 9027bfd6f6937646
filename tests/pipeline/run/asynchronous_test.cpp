// Asynchronous training has bits, too. A run on several ranks, whose messages come when they come, learns
// what one rank learns that emulates the delays, and wherever a run drains, is saved and goes on, it learns
// the same. That the delays are the right ones is held to a recurrence that keeps every version of the
// weights.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "framework/adamw.h"
#include "framework/files/state_dict.h"
#include "framework/muon.h"
#include "framework/prediction.h"
#include "framework/random.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/transport/passing_transport.h"

namespace antichain::test {
namespace {

// Two epochs of six steps, evaluated after each four, and once within a run of steps.
TrainingCase case_for(const Policy& policy) {
  return {.microbatch = 1,
          .microbatches = fitting(policy, 4, 4),
          .steps = 6,
          .rate = 0.01f,
          .epochs = 2,
          .evaluate_every = 4};
}

MakeSchedule flowing(const Policy& policy) {
  return [policy](const Profile& profile, const Plan& plan, int microbatches) {
    return make_flowing_schedule(profile, plan, policy, microbatches);
  };
}

// All stages of so many are on one rank.
TrainingRun emulated(const TrainingCase& c, const Policy& policy, const MakePlan& cut, int stages) {
  return train_on_threads(c, 1, placed(cut, std::vector<int>(size_t(stages), 0)), by_policy(policy));
}

// A JitteryTransport sleeps for up to a millisecond before it sends or waits.
class JitteryTransport : public PassingTransport {
 public:
  JitteryTransport(Transport& below, unsigned seed) : PassingTransport(below), random_(seed) {}
  void send(MessageKey key, int peer, Tensor t) override {
    sleep();
    PassingTransport::send(key, peer, std::move(t));
  }
  void wait(Ticket ticket) override {
    sleep();
    PassingTransport::wait(ticket);
  }

 private:
  void sleep() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
  }
  std::mt19937 random_;
};

TrainingCase jittery(TrainingCase c, unsigned seed) {
  c.over = [seed](JobTransport& job, const Context&) {
    return std::make_unique<JitteryTransport>(job, seed + unsigned(job.rank()));
  };
  return c;
}

TEST(Asynchronous, RanksLearnWhatOneRankLearnsThatEmulatesTheirDelays) {
  for (const Policy& policy : asynchronous_policies())
    for (const int ranks : {2, 3, 4}) {
      const std::string what = fmt::format("{} on {} ranks", policy.name, ranks);
      const TrainingCase c = case_for(policy);
      const MakePlan cut = at_random(unsigned(ranks));
      const TrainingRun one = emulated(c, policy, cut, ranks);
      ASSERT_EQ(one.evaluated, (std::vector<int64_t>{4, 8, 12}));
      expect_same(train_on_threads(c, ranks, cut, flowing(policy)), one, what);
      expect_same(train_on_threads(jittery(c, unsigned(ranks)), ranks, cut, flowing(policy)), one,
                  what + ", with delays");
      expect_same(train_on_threads(c, ranks, cut, by_policy(policy)), one, what + ", step by step");
    }
}

TEST(Asynchronous, RanksLearnTheSameInBf16AndWithOtherOptimisers) {
  std::vector<TrainingCase> cases(3, {.microbatch = 1, .steps = 4, .rate = 0.01f});
  cases[0].optimiser = std::make_shared<AdamW>(AdamWOptions{});
  cases[1].optimiser = std::make_shared<Muon>(MuonOptions{}), cases[1].model = "small_gpt";
  cases[2].precision = cpu::has_bf16() ? Precision::bf16 : Precision::float32;
  for (const Policy& policy : asynchronous_policies())
    for (TrainingCase c : cases) {
      c.microbatches = fitting(policy, 4, 3);
      const MakePlan cut = at_random(5);
      expect_same(train_on_threads(c, 3, cut, flowing(policy)), emulated(c, policy, cut, 3),
                  fmt::format("{}, {}", policy.name, c.model));
    }
}

// Of steps in a row, each adds up what the uses of a weight contribute.
TEST(Asynchronous, AStageThatUsesAWeightTwiceLearnsWhatOneRankLearns) {
  const MakePlan last_two_apart = [](const Profile& profile, int) {
    std::vector<std::vector<int>> stages(2);
    const int nodes = int(profile.nodes.size());
    for (int n = 0; n < nodes; ++n)
      if (profile.nodes[size_t(n)].role != Role::input) stages[n < nodes - 2 ? 0 : 1].push_back(n);
    return plan_of(profile, stages);
  };
  for (const Policy& policy : asynchronous_policies()) {
    TrainingCase c = case_for(policy);
    c.model = "siamese";
    c.microbatches = fitting(policy, 4, 2);
    expect_same(train_on_threads(c, 2, last_two_apart, flowing(policy)),
                emulated(c, policy, last_two_apart, 2), std::string(policy.name));
  }
}

// A delay of one on every stage is the same training whatever the cut.
TEST(Asynchronous, UniformDelaysGiveOneHashWhateverTheCutAndTheRanks) {
  const Policy& policy = antichain::policy("2bw");
  const TrainingCase c = case_for(policy);
  const TrainingRun one = train_on_threads(c, 1, by_antichains, by_policy(policy));
  EXPECT_NE(one.state, train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b)).state);
  for (const int ranks : {2, 3, 4})
    for (const unsigned seed : {1, 2})
      expect_same(train_on_threads(c, ranks, at_random(seed), flowing(policy)), one,
                  fmt::format("{} ranks, cut {}", ranks, seed));
}

TEST(Asynchronous, DelaysOfStagesBehindAreNoneOnOneRank) {
  for (const char* name : {"pipedream", "stale"}) {
    const TrainingCase c = case_for(policy(name));
    expect_same(train_on_threads(c, 1, by_antichains, by_policy(policy(name))),
                train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b)), name);
  }
}

TEST(Asynchronous, WhereStagesComputeAgainTheyReadTheWeightsOfTheForward) {
  const Policy& policy = antichain::policy("pipedream");
  const TrainingCase c = case_for(policy);
  const MakePlan cut = at_random(2);
  const TrainingRun one = emulated(c, policy, cut, 3);
  expect_same(train_on_threads(c, 3, recomputing(cut, 0), flowing(policy)), one, "all");
  expect_error([&] { train_on_threads(c, 3, recomputing(cut, 0), flowing(antichain::policy("stale"))); },
               {"recomputes", "--recompute none"});
}

// A checkpoint has the older weights, so a run that goes on from one, on the ranks it had or on one that
// emulates them, is the run that was never cut short.
TEST(Asynchronous, ARunGoesOnToTheSameBits) {
  for (const Policy& policy : asynchronous_policies()) {
    const MakePlan cut = at_random(3);
    const TrainingRun whole = emulated(case_for(policy), policy, cut, 3);
    for (const int until : {1, 3, 7}) {
      const TemporaryFolder folder;
      TrainingCase c = case_for(policy);
      c.checkpoint = folder.str(), c.every_steps = 5, c.until = until;
      const TrainingRun first = train_on_threads(c, 3, cut, flowing(policy));
      c.until = 9;
      const TrainingRun second = emulated(c, policy, cut, 3);
      c.until = 0;
      const TrainingRun rest = train_on_threads(c, 3, cut, flowing(policy));
      EXPECT_EQ(rest.first_step, 9);
      std::vector<double> losses = first.losses;
      for (const auto* run : {&second, &rest})
        losses.insert(losses.end(), run->losses.begin(), run->losses.end());
      EXPECT_EQ(losses, whole.losses) << policy.name << ", " << until;
      EXPECT_EQ(rest.state, whole.state) << policy.name << ", " << until;
    }
  }
}

TEST(Asynchronous, ARunWithOtherDelaysIsRefused) {
  const TemporaryFolder folder;
  const MakePlan cut = at_random(3);
  TrainingCase c = case_for(policy("pipedream"));
  c.checkpoint = folder.str(), c.until = 2;
  train_on_threads(c, 3, cut, flowing(policy("pipedream")));
  c.until = 3;
  expect_error([&] { train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b)); },
               {"behind-1/", "does not train with", "--schedule"});
  expect_error([&] { emulated(c, policy("pipedream"), cut, 4); }, {"no tensor 'behind-3/", "--schedule"});
}

std::vector<Policy> predicting() {
  std::vector<Policy> found;
  for (const Policy& policy : asynchronous_policies())
    for (const PredictionMethod& method : prediction_methods()) found.push_back(policy.predicting(&method));
  return found;
}

std::string named(const Policy& policy) {
  return fmt::format("{} with {}", policy.name, policy.predict->name);
}

TEST(Asynchronous, RanksPredictWhatOneRankPredicts) {
  std::vector<std::shared_ptr<const Optimiser>> optimisers = {
      default_optimiser(), std::make_shared<AdamW>(AdamWOptions{}), std::make_shared<Muon>(MuonOptions{})};
  int ranks = 2;
  for (const Policy& policy : predicting()) {
    TrainingCase c = case_for(policy);
    c.optimiser = optimisers[size_t(ranks) % 3];
    const MakePlan cut = at_random(unsigned(ranks));
    const TrainingRun one = emulated(c, policy, cut, ranks);
    expect_same(train_on_threads(jittery(c, unsigned(ranks)), ranks, cut, flowing(policy)), one,
                named(policy) + ", with delays");
    expect_same(train_on_threads(c, ranks, cut, by_policy(policy)), one, named(policy) + ", step by step");
    Policy without = policy;
    without.predict = nullptr;
    EXPECT_NE(one.state, emulated(c, without, cut, ranks).state) << named(policy);
    if (++ranks > 4) ranks = 2;
  }
}

TEST(Asynchronous, EachPredictionWorksWithEachOptimiserAndInBf16) {
  for (const PredictionMethod& method : prediction_methods()) {
    std::vector<TrainingCase> cases(3, {.microbatch = 1, .microbatches = 1, .steps = 4, .rate = 0.01f});
    cases[0].optimiser = std::make_shared<AdamW>(AdamWOptions{});
    cases[1].optimiser = std::make_shared<Muon>(MuonOptions{}), cases[1].model = "small_gpt";
    cases[2].precision = cpu::has_bf16() ? Precision::bf16 : Precision::float32;
    for (const TrainingCase& c : cases) {
      const Policy policy = antichain::policy("pipedream").predicting(&method);
      const MakePlan cut = at_random(5);
      expect_same(train_on_threads(c, 3, cut, flowing(policy)), emulated(c, policy, cut, 3),
                  fmt::format("{}, {}", named(policy), c.model));
    }
  }
}

TEST(Asynchronous, PredictionsAreNoneOnOneRank) {
  for (const PredictionMethod& method : prediction_methods()) {
    const Policy policy = antichain::policy("pipedream").predicting(&method);
    const TrainingCase c = case_for(policy);
    expect_same(train_on_threads(c, 1, by_antichains, by_policy(policy)),
                train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b)), named(policy));
  }
}

TEST(Asynchronous, APredictingRunGoesOnToTheSameBits) {
  for (const char* method : {"pipeoptim", "momentum"}) {
    const Policy policy = antichain::policy("pipedream").predicting(prediction_method(method));
    const MakePlan cut = at_random(3);
    const TrainingRun whole = emulated(case_for(policy), policy, cut, 3);
    const TemporaryFolder folder;
    TrainingCase c = case_for(policy);
    c.checkpoint = folder.str(), c.until = 3;
    train_on_threads(c, 3, cut, flowing(policy));
    c.until = 9;
    emulated(c, policy, cut, 3);
    expect_error([&] { emulated(c, antichain::policy("pipedream"), cut, 3); }, {"predicted-0/", "--predict"});
    c.until = 0;
    EXPECT_EQ(train_on_threads(c, 3, cut, flowing(policy)).state, whole.state) << method;
  }
}

// The first steps are those of synchronous training, and the rate of stage 0 is a third at first.
TEST(Asynchronous, DelaysAreCorrectedAsOneRankCorrectsThem) {
  for (const Policy& policy : asynchronous_policies()) {
    TrainingCase c = case_for(policy);
    const MakePlan cut = at_random(4);
    const TrainingRun plain = emulated(c, policy, cut, 4);
    c.correction = {.synchronous_steps = 3, .annealing_steps = 5};
    const TrainingRun one = emulated(c, policy, cut, 4);
    EXPECT_NE(one.state, plain.state);
    expect_same(train_on_threads(jittery(c, 4), 4, cut, flowing(policy)), one, std::string(policy.name));
    const TrainingRun same = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
    for (size_t n = 0; n < 4; ++n) EXPECT_EQ(one.losses[n], same.losses[n]) << policy.name << n;
    EXPECT_NE(one.losses.back(), same.losses.back());
    const TemporaryFolder folder;
    c.checkpoint = folder.str();
    for (const int until : {2, 4}) c.until = until, train_on_threads(c, 4, cut, flowing(policy));
    c.until = 0;
    EXPECT_EQ(emulated(c, policy, cut, 4).state, one.state) << policy.name;
  }
}

MakePlan replicated_cut(unsigned seed, const std::vector<int>& replicas) {
  return [seed, replicas](const Profile& profile, int) {
    return replicated(at_random(seed)(profile, int(replicas.size())), replicas);
  };
}

// With replicas a step's gradients are added up in their order; the weights that they are of are the older
// ones all the same, wherever the pipeline drains. So two replicas of one stage are those of each of two
// stages, and one rank within what sums in another order round.
TEST(Asynchronous, ReplicasTrainWithTheSameDelay) {
  const Policy policy = antichain::policy("2bw");
  const TrainingCase c = case_for(policy);
  const TrainingRun two = train_on_threads(c, 2, replicated_cut(1, {2}), flowing(policy));
  expect_same(train_on_threads(jittery(c, 9), 4, replicated_cut(2, {2, 2}), flowing(policy)), two, "of two");
  expect_same(train_on_threads(c, 4, replicated_cut(2, {2, 2}), by_policy(policy)), two, "step by step");
  expect_same(train_on_threads(jittery(c, 3), 3, replicated_cut(3, {1, 2}), flowing(policy)),
              train_on_threads(c, 3, replicated_cut(3, {1, 2}), by_policy(policy)), "one and two");
  TrainingCase shorter = c;
  shorter.epochs = 0, shorter.epoch = false, shorter.steps = 3, shorter.evaluate_every = 0;
  const TrainingRun many = train_on_threads(shorter, 3, replicated_cut(1, {2, 1}), flowing(policy)),
                    one = train_on_threads(shorter, 1, by_antichains, by_policy(policy)),
                    synchronous = train_on_threads(shorter, 1, by_antichains, by_policy(Policy::one_f_one_b));
  ASSERT_EQ(many.losses.size(), 3u);
  for (size_t n = 0; n < 3; ++n) EXPECT_NEAR(many.losses[n] / one.losses[n], 1, 1e-5);
  EXPECT_GT(std::abs(synchronous.losses[1] / one.losses[1] - 1), 1e-3);
}

// What preflight adds up are the tensors that a rank holds; what a profile tells leaves out buffers and what
// padding takes.
void expect_versions_as_told(const std::string& model, int microbatch) {
  register_cpu_backend();
  const Backend& cpu = backend("cpu");
  Context context(cpu, 1);
  const Graph graph = lower(network(model, {.microbatch = microbatch}), cpu);
  const auto optimiser = default_optimiser();
  const Profile profile = priced_by_flops(unpriced(graph, cpu.description(), *optimiser));
  for (const Policy& plain : {antichain::policy("pipedream"), antichain::policy("2bw")})
    for (const Policy& policy : {plain, plain.predicting(prediction_method("momentum"))})
      for (const int ranks : {2, 4}) {
        const Plan plan = by_antichains(profile, ranks);
        const Schedule schedule = make_flowing_schedule(profile, plan, policy, fitting(policy, 4, ranks));
        const std::vector<MemoryShares> told = memory_shares(schedule, plan, profile);
        for (int rank = 0; rank < ranks; ++rank) {
          const std::string what = fmt::format("{}, {}, {}, rank {} of {}", model, policy.name,
                                               policy.predict ? "predicted" : "plain", rank, ranks);
          const RankModel held_model(graph, nodes_of_rank(plan, rank), context, 7, optimiser, {},
                                     kept_versions(schedule, plan, rank));
          int64_t held = 0;
          const auto add = [&](NodeId id, const NodeWeights& of) {
            for (size_t i = 0; i < of.params.size(); ++i)
              if (of.params[i].raw() != held_model[id].params[i].raw()) held += of.params[i].bytes();
            for (const Tensor& t : of.buffers) held += t.bytes();
            for (const Tensor& t : of.prepared) held += t.bytes();
          };
          for (const NodeId id : held_model.nodes()) {
            for (const NodeWeights& older : held_model[id].older) add(id, older);
            if (held_model[id].ahead) add(id, *held_model[id].ahead);
          }
          EXPECT_EQ(step_need(graph, *optimiser, profile, plan, schedule, rank).step.versions, held) << what;
          EXPECT_NEAR(double(told[size_t(rank)].versions), double(held), 0.05 * double(held)) << what;
          EXPECT_EQ(held > 0, schedule.delay(rank) > 0) << what;
        }
      }
}

TEST(Asynchronous, BytesOfVersionsAreThoseThatAreHeld) {
  for (const char* model : {"resnet20", "gpt_nano"}) expect_versions_as_told(model, 2);
}
TEST(LargeAsynchronous, BytesOfVersionsAreThoseThatAreHeld) { expect_versions_as_told("resnet18", 2); }

TEST(Asynchronous, TheRateIsDividedByLessAndLess) {
  const DelayCorrection none, of{.synchronous_steps = 2, .annealing_steps = 4};
  EXPECT_EQ(none.power(0), 0);
  EXPECT_EQ(of.power(1), 0);
  EXPECT_EQ(of.power(2), 1);
  EXPECT_EQ(of.power(5), 0.25);
  EXPECT_EQ(of.power(100), 0);
}

// SameBatches draws the images and labels of a micro-batch by its step and number.
class SameBatches : public BatchSource {
 public:
  uint64_t step = 0;
  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    const Philox random{step * 100 + uint64_t(microbatch)};
    if (out.dtype() == DType::i32)
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<int32_t>()[i] = int32_t(random.words(7 + i)[0] % 10);
    else
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<float>()[i] = float(random.words(uint64_t(i) + input.size())[0]) / 4294967296.f - 0.5f;
  }
};

// A Recurrence is one rank's model whose weights are set before every pass.
struct Recurrence {
  static constexpr float rate = 0.05f;

  Recurrence(const Policy& of, int stages, int microbatches)
      : policy(of),
        plan(placed(at_random(4), std::vector<int>(size_t(stages), 0))(profile, 1)),
        schedule(make_schedule(profile, plan, of, microbatches)),
        microbatches(microbatches) {}

  // Returns the weights after each of so many steps, as the schedule's program gives them.
  std::vector<Weights> by_schedule(int steps) {
    std::vector<Weights> all;
    run_ranks(1, [&](JobTransport& job) {
      RankModel model(graph, nodes_of_rank(plan, 0), context, 7, plain_sgd(), {},
                      kept_versions(schedule, plan, 0));
      StageRunner runner(model, profile, plan, schedule, Mode::train, job);
      SameBatches source;
      for (source.step = 0; source.step < uint64_t(steps); ++source.step) {
        runner.run({.step = source.step, .batch = 2 * microbatches, .rate = rate}, source);
        all.push_back(weights_of(model));
      }
    });
    return all;
  }

  // Returns the same by w(n + 1) = w(n) - rate g(w(n - d)), where every version is kept, and gradients are
  // what a synchronous step subtracts.
  std::vector<Weights> by_recurrence(int steps) {
    std::vector<Weights> versions;
    const std::vector<int> stage_of = plan.stage_of(graph.size());
    const Schedule synchronous = make_schedule(profile, plan, Policy::gpipe, microbatches);
    run_ranks(1, [&](JobTransport& job) {
      RankModel model(graph, nodes_of_rank(plan, 0), context, 7, plain_sgd());
      StageRunner runner(model, profile, plan, synchronous, Mode::train, job);
      SameBatches source;
      versions.push_back(weights_of(model));
      for (source.step = 0; source.step < uint64_t(steps); ++source.step) {
        const int newest = int(source.step);
        Weights read, updated;
        for (const StateEntry& e : state_entries(graph)) {
          const int delay = schedule.delay(stage_of[size_t(e.node)]);
          read.add(*versions[size_t(std::max(0, newest - delay))].find(e.name));
        }
        load_weights(model, read, Fit::whole, "the recurrence");
        runner.run({.step = source.step, .batch = 2 * microbatches, .rate = rate}, source);
        const Weights stepped = weights_of(model);
        for (const StateEntry& e : state_entries(graph)) {
          NamedTensor t = *(e.buffer ? stepped : versions.back()).find(e.name);
          for (int64_t i = 0; !e.buffer && i < t.elements(); ++i)
            std::get<0>(t.values)[size_t(i)] -= std::get<0>(read.find(e.name)->values)[size_t(i)] -
                                                std::get<0>(stepped.find(e.name)->values)[size_t(i)];
          updated.add(std::move(t));
        }
        versions.push_back(std::move(updated));
      }
    });
    versions.erase(versions.begin());
    return versions;
  }

  static std::shared_ptr<const Optimiser> plain_sgd() {
    return std::make_shared<Sgd>(SgdOptions{.momentum = 0, .weight_decay = 0, .nesterov = false});
  }

  const Backend& cpu = (register_cpu_backend(), backend("cpu"));
  Context context{cpu, 1};
  const Graph graph = lower(network("every_edge", {.microbatch = 2}), cpu);
  const Profile profile = priced_by_flops(unpriced(graph, cpu.description(), *plain_sgd()));
  const Policy policy;
  const Plan plan;
  const Schedule schedule;
  const int microbatches;
};

// The recurrence adds up differences of weights of the order of 1, whose rounding is 1e-7 each; a wrong
// version is off by the rate times a gradient, 1e-3 and more. Running averages are no weights.
TEST(Asynchronous, VersionsAreThoseOfTheRecurrence) {
  for (const char* name : {"2bw", "pipedream"}) {
    Recurrence of(policy(name), 4, fitting(policy(name), 4, 4));
    constexpr int steps = 8;
    const std::vector<Weights> ours = of.by_schedule(steps), right = of.by_recurrence(steps);
    double most = 0, moved = 0;
    for (int n = 0; n < steps; ++n)
      for (const StateEntry& e : state_entries(of.graph)) {
        if (e.buffer) continue;
        const auto& a = std::get<0>(ours[size_t(n)].find(e.name)->values);
        const auto& b = std::get<0>(right[size_t(n)].find(e.name)->values);
        const auto& first = std::get<0>(ours[0].find(e.name)->values);
        for (size_t i = 0; i < a.size(); ++i) {
          most = std::max(most, double(std::abs(a[i] - b[i])));
          moved = std::max(moved, double(std::abs(a[i] - first[i])));
        }
      }
    EXPECT_LT(most, 1e-5) << name;
    EXPECT_GT(moved, 1e-2) << name;
  }
}

}  // namespace
}  // namespace antichain::test
