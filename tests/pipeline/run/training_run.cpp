#include "tests/pipeline/run/training_run.h"

#include <cmath>
#include <cstring>
#include <random>

#include "data/mix.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/random.h"
#include "layers/cpu/backend.h"
#include "partition/plan/recompute.h"
#include "partition/planners/planner.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/stage_state.h"
#include "pipeline/train/state_hash.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/every_edge.h"

namespace antichain::test {
namespace {

// A NoiseSet has a few random images, by index.
class NoiseSet : public ImageSet {
 public:
  NoiseSet(int64_t size, Shape image) : size_(size), image_(std::move(image)) {}
  std::string name() const override { return "noise"; }
  int64_t size() const override { return size_; }
  Shape image_shape() const override { return image_; }
  std::span<const std::string> class_names() const override { return names_; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    const Philox random{uint64_t(index)};
    for (size_t i = 0; i < out.size(); ++i) out[i] = uint8_t(random.words(i)[0]);
  }
  int label(int64_t index) const override { return int(index * 7 % 10); }

 private:
  int64_t size_;
  Shape image_;
  std::vector<std::string> names_{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
};

// A TokenSet has samples of random tokens, and a label for each.
class TokenSet : public DataSet {
 public:
  TokenSet(int64_t size, int64_t length) : size_(size), length_(length) {}
  std::string name() const override { return "tokens"; }
  int64_t size() const override { return size_; }
  std::vector<SampleArray> arrays() const override {
    const TensorSpec sample{{length_}, DType::i32};
    return {{"tokens", sample}, {"labels", sample}};
  }
  void read(size_t array, int64_t index, std::span<std::byte> out) const override {
    const Philox random{uint64_t(index)};
    for (int64_t i = 0; i < length_; ++i) {
      const auto token = int32_t(random.words(uint64_t(i) + array)[0] % 10);
      std::memcpy(out.data() + size_t(i) * sizeof token, &token, sizeof token);
    }
  }

 private:
  int64_t size_, length_;
};

// The test set's last batch is uneven, and so is the training set's, which is dropped.
DataSplits data_for(const Graph& graph, int64_t train, int64_t test) {
  if (const NodeId tokens = graph.find("tokens"); tokens >= 0) {
    const int64_t length = graph.shape(tokens)[1];
    return {std::make_shared<TokenSet>(train, length), std::make_shared<TokenSet>(test, length)};
  }
  const Shape images = graph.shape(graph.find("images"));
  const Shape image{images[1], images[2], images[3]};
  return {std::make_shared<NoiseSet>(train, image), std::make_shared<NoiseSet>(test, image)};
}

class Recorder : public TrainObserver {
 public:
  Recorder(TrainingRun& run, const TrainingCase& c) : run_(run), case_(c) {}
  void on_step(const StepReport& report) override {
    run_.losses.push_back(report.loss);
    case_.on_step(report);
  }
  void on_evaluation(const EvaluationReport& report) override {
    run_.test_accuracy = report.test_accuracy;
    run_.epoch_losses.push_back(report.train_loss);
    run_.evaluated.push_back(report.step);
    run_.test_losses.push_back(report.test_loss);
  }
  void on_checkpoint(const CheckpointReport& report) override { run_.checkpoints.push_back(report); }

 private:
  TrainingRun& run_;
  const TrainingCase& case_;
};

}  // namespace

TrainingRun train_on_threads(const TrainingCase& c, int ranks, const MakePlan& make_plan,
                             const MakeSchedule& make_schedule) {
  register_cpu_backend();
  const Backend& device = backend(c.device);
  const int batch = c.microbatch * c.microbatches;
  const Graph plain = network(
      c.model,
      {.microbatch = c.microbatch, .soft_labels = mixes(c.augment), .aux = c.aux, .freeze = c.freeze});
  const DataSplits data = data_for(plain, batch * c.steps + 1, batch + 3);
  TrainingRun run;
  run_ranks(
      ranks,
      [&](JobTransport& job) {
        Context context(device, 1, job.local_rank());
        device.enter(context);
        const std::unique_ptr<Transport> own = c.over ? c.over(job, context) : nullptr;
        Transport& transport = own ? *own : job;
        const Graph graph = lower(plain, device, c.precision);
        const Profile profile = priced_by_flops(unpriced(graph, device.description(), *c.optimiser));
        const Plan plan = make_plan(profile, ranks);
        validate(plan, profile);
        const bool agree = agree_before_update(c.on_nan, c.clip_norm);
        Schedule schedule = make_schedule(profile, plan, c.microbatches);
        if (c.clip_norm > 0 && ranks > 1) schedule = with_votes(std::move(schedule));
        validate(schedule, profile, plan);
        RankModel model(graph, nodes_of_rank(plan, transport.rank()), context, c.seed, c.optimiser,
                        shards_of(graph, *c.optimiser, profile, plan, schedule, transport.rank()),
                        kept_versions(schedule, plan, transport.rank()));
        Recorder recorder(run, c);
        TrainOptions options{.batch = batch,
                             .epochs = c.epoch ? 1 : 0,
                             .steps = c.epoch ? 0 : c.steps,
                             .seed = c.seed,
                             .augment = c.augment,
                             .rate = [&c](int64_t step) { return c.rate * std::pow(c.decay, float(step)); },
                             .on_nan = c.on_nan,
                             .clip_norm = c.clip_norm,
                             .correction = c.correction,
                             .between_ranks = agree ? Steps::apart : c.between_ranks,
                             .device_augments = c.device_augments,
                             .evaluate_every = c.evaluate_every,
                             .patience = c.patience,
                             .keep_best = c.keep_best};
        if (c.epochs > 0) options.epochs = c.epochs, options.steps = c.until;
        if (!c.checkpoint.empty()) {
          options.checkpoint = {
              .folder = c.checkpoint, .every_steps = c.every_steps, .every_s = c.every_s, .keep = c.keep};
          if (const auto there = CheckpointFolder(c.checkpoint).list(); !there.empty()) {
            const Manifest manifest = verify_checkpoint(there[0]);
            restore(model, there[0], manifest);
            options.checkpoint.resumed = there[0];
            options.start = manifest.position;
            if (transport.rank() == 0) run.first_step = manifest.position.step;
          }
        }
        const std::unique_ptr<MoveRule> moves = transport.rank() == 0 ? c.moves(profile) : nullptr;
        options.moves = moves.get();
        job.barrier();  // nobody writes while others look
        const TrainResult result = train(model, profile, plan, schedule, data, transport, options, recorder);
        const StateHash state = state_hash(model, job);
        Weights weights = gather_weights(model, job);
        if (transport.rank() != 0) return;
        run.state = state.all;
        run.unsaved = result.unsaved;
        run.best = result.best;
        run.steps = result.steps;
        run.ended_early = result.ended_early;
        run.weights = std::move(weights);
      },
      {.watchdog_s = c.watchdog_s});
  return run;
}

Plan by_antichains(const Profile& profile, int stages) {
  return plan_antichain(profile, {.stages = stages, .cluster = one_link({.bytes_per_s = 1e9})});
}

MakePlan at_random(unsigned seed) {
  return [seed](const Profile& profile, int stages) {
    std::mt19937 random(seed);
    return random_plan(random, profile, stages);
  };
}

MakePlan recomputing(MakePlan cut, unsigned seed) {
  return [cut = std::move(cut), seed](const Profile& profile, int stages) {
    Plan plan = cut(profile, stages);
    std::mt19937 random(seed);
    recompute(plan, profile, {.all = true});
    for (PlanStage& stage : plan.stages)
      std::erase_if(stage.recomputed, [&](int) { return seed > 0 && random() % 2 == 0; });
    return plan;
  };
}

MakePlan placed(MakePlan cut, std::vector<int> rank_of_stage) {
  return [cut = std::move(cut), ranks = std::move(rank_of_stage)](const Profile& profile, int) {
    Plan plan = cut(profile, int(ranks.size()));
    for (size_t s = 0; s < ranks.size(); ++s) plan.stages[s].ranks = {ranks[s]};
    return plan;
  };
}

MakeSchedule by_policy(Policy policy) {
  return [policy](const Profile& profile, const Plan& plan, int microbatches) {
    return make_schedule(profile, plan, policy, microbatches);
  };
}

Profile priced_by_flops(Profile profile) {
  for (ProfileNode& node : profile.nodes) {
    NodeCost& cost = node.cost;
    cost.forward_s = cost.flops / 1e11 + double(cost.output_bytes) / 1e10 + 1e-6;
    cost.backward_input_s = cost.forward_s;
    if (cost.param_bytes > 0) cost.backward_weight_s = cost.forward_s;
  }
  return profile;
}

}  // namespace antichain::test
