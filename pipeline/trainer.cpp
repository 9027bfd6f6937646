#include "pipeline/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "data/loader.h"
#include "framework/error.h"
#include "pipeline/fault.h"

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Input nodes by name: "images" and "labels" of the batch at `position`.
class LoaderSource : public BatchSource {
 public:
  LoaderSource(std::shared_ptr<const DataSet> data, const LoaderOptions& options)
      : loader_(std::move(data), options) {}

  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    if (input == "images") return loader_.fill_images(position, microbatch, out);
    if (input == "labels") return loader_.fill_labels(position, microbatch, out);
    throw Error(fmt::format("the model has an input '{}' that no data set fills", input),
                "name inputs images or labels");
  }

  const Sampler& sampler() const { return loader_.sampler(); }
  BatchPosition position;

 private:
  Loader loader_;
};

bool uses(const Stage& stage, std::string_view input) {
  const NodeId id = stage.graph().find(input);
  return id >= 0 && std::ranges::any_of(stage.graph().consumers(id), [&](NodeId c) { return stage.owns(c); });
}

// Sums over ranks, in rank order, on rank 0.
StepResult gather_sums(Transport& transport, const StepResult& mine) {
  StepResult sum;
  for (const std::string& text : transport.gather(fmt::format("{} {}", mine.loss, mine.correct))) {
    std::istringstream in(text);
    double loss = 0, correct = 0;
    in >> loss >> correct;
    sum.loss += loss;
    sum.correct += correct;
  }
  return sum;
}

// A traced step has one event per action, in the schedule's order: only the times need to travel.
std::vector<Event> gather_events(Transport& transport, const Schedule& schedule,
                                 const std::vector<Event>& mine) {
  std::string times;
  for (const Event& e : mine) times += fmt::format("{} {}\n", e.start_s, e.end_s);
  std::vector<Event> all;
  const auto texts = transport.gather(times);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream in(texts[rank]);
    for (const Action& action : schedule.ranks[rank]) {
      Event e{.rank = int(rank), .action = action};
      in >> e.start_s >> e.end_s;
      all.push_back(e);
    }
  }
  return all;
}

class Trainer {
 public:
  Trainer(Stage& stage, const Profile& network, const Plan& plan, const Schedule& schedule,
          const DataSplits& data, Transport& transport, const TrainOptions& options, TrainObserver& observer)
      : transport_(transport),
        options_(options),
        observer_(observer),
        schedule_(schedule),
        evaluation_(make_schedule(network, plan, Policy::forward_only, schedule.microbatches)),
        trainer_(stage, network, plan, schedule, Mode::train, transport),
        evaluator_(stage, network, plan, evaluation_, Mode::evaluate, transport),
        train_(data.train, loading(stage, schedule.microbatches, true)),
        test_(data.test, loading(stage, schedule.microbatches, false)),
        test_size_(data.test->size()) {}

  TrainResult run() {
    const int64_t per_epoch = train_.sampler().batches();
    const int64_t total = total_steps(options_, per_epoch);
    TrainResult result{.steps = total, .memory_bytes = trainer_.bytes()};
    std::vector<double> step_seconds;
    for (int64_t step = 0; step < total; ++step) {
      if (step % per_epoch == 0) begin_epoch();
      const StepResult mine = train_step(step, total, per_epoch, step_seconds);
      if (step == traced_step(total)) result.events = gather_events(transport_, schedule_, mine.events);
      if ((step + 1) % per_epoch == 0) end_epoch(step, per_epoch);
    }
    if (step_seconds.size() > 1) step_seconds.erase(step_seconds.begin());  // the first one warms caches up
    if (!step_seconds.empty()) {
      const auto middle = step_seconds.begin() + std::ptrdiff_t(step_seconds.size() / 2);
      std::nth_element(step_seconds.begin(), middle, step_seconds.end());
      result.step_s = *middle;
    }
    return result;
  }

 private:
  LoaderOptions loading(const Stage& stage, int microbatches, bool train) const {
    return {.batch = options_.batch,
            .microbatches = microbatches,
            .seed = options_.seed,
            .train = train,
            .images = uses(stage, "images")};
  }

  int64_t traced_step(int64_t total) const { return options_.trace ? std::min<int64_t>(3, total - 1) : -1; }

  void begin_epoch() {
    epoch_start_ = Clock::now();
    epoch_sums_ = {};
  }

  StepResult train_step(int64_t step, int64_t total, int64_t per_epoch, std::vector<double>& step_seconds) {
    transport_.activity().doing(fmt::format("begin of step {}", step));
    fault_point(transport_.rank(), step);
    train_.position = {.epoch = step / per_epoch, .batch = step % per_epoch};
    const float rate = options_.rate(step, total);
    const auto start = Clock::now();
    StepResult mine = trainer_.run({.step = uint64_t(step),
                                    .seed = options_.seed,
                                    .batch = options_.batch,
                                    .rate = rate,
                                    .sgd = options_.sgd,
                                    .traced = step == traced_step(total)},
                                   train_);
    transport_.activity().doing("waiting for the other ranks to end the step");
    const StepResult sum = gather_sums(transport_, mine);
    const double seconds = seconds_since(start);
    step_seconds.push_back(seconds);
    epoch_sums_.loss += sum.loss;
    epoch_sums_.correct += sum.correct;
    if (transport_.rank() == 0)
      observer_.on_step({.step = step,
                         .total_steps = total,
                         .epoch = step / per_epoch,
                         .loss = sum.loss / options_.batch,
                         .accuracy = sum.correct / options_.batch,
                         .rate = rate,
                         .seconds = seconds,
                         .images_per_s = options_.batch / seconds});
    return mine;
  }

  void end_epoch(int64_t step, int64_t per_epoch) {
    EpochReport report{.epoch = step / per_epoch, .step = step + 1, .train_s = seconds_since(epoch_start_)};
    const double samples = double(per_epoch) * options_.batch;
    report.train_loss = epoch_sums_.loss / samples;
    report.train_accuracy = epoch_sums_.correct / samples;
    const auto start = Clock::now();
    const StepResult test = evaluate();
    report.test_s = seconds_since(start);
    report.test_loss = test.loss / double(test_size_);
    report.test_accuracy = test.correct / double(test_size_);
    if (transport_.rank() == 0) observer_.on_epoch(report);
  }

  // Every image of the test set once; the last batch is padded with samples that count nothing.
  StepResult evaluate() {
    StepResult sum;
    for (int64_t batch = 0; batch < test_.sampler().batches(); ++batch) {
      test_.position = {.epoch = 0, .batch = batch};
      const StepResult part = evaluator_.run({.seed = options_.seed, .batch = options_.batch}, test_);
      sum.loss += part.loss;
      sum.correct += part.correct;
    }
    transport_.activity().doing("waiting for the other ranks to end the evaluation");
    return gather_sums(transport_, sum);
  }

  Transport& transport_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  const Schedule& schedule_;
  const Schedule evaluation_;
  StageRunner trainer_, evaluator_;
  LoaderSource train_, test_;
  const int64_t test_size_;
  Clock::time_point epoch_start_;
  StepResult epoch_sums_;
};

}  // namespace

int64_t total_steps(const TrainOptions& options, int64_t batches_per_epoch) {
  const int64_t whole = int64_t(options.epochs) * batches_per_epoch;
  if (options.steps == 0) return whole;
  return options.epochs == 0 ? options.steps : std::min(options.steps, whole);
}

TrainResult train(Stage& stage, const Profile& network, const Plan& plan, const Schedule& schedule,
                  const DataSplits& data, Transport& transport, const TrainOptions& options,
                  TrainObserver& observer) {
  return Trainer(stage, network, plan, schedule, data, transport, options, observer).run();
}

}  // namespace antichain
