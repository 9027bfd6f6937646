#include "pipeline/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "framework/error.h"
#include "framework/loss_mean.h"
#include "pipeline/host/core_time.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "pipeline/host/stop_signals.h"
#include "pipeline/train/best_watch.h"
#include "pipeline/train/steps_under_way.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;

// Every stage that has a weight updates it by the same rate.
void check_correction(const DelayCorrection& correction, const Graph& graph, const Plan& plan,
                      const Schedule& schedule) {
  if (correction.annealing_steps == 0) return;
  const std::vector<int> stage_of = plan.stage_of(graph.size());
  for (const auto& [name, uses] : graph.shared())
    for (const ParamUse& use : uses)
      if (schedule.delay(stage_of[size_t(use.node)]) != schedule.delay(stage_of[size_t(uses.front().node)]))
        throw Error(fmt::format("the rate of a stage is to be divided by its delay, but stages of different "
                                "delays share the weight '{}'",
                                name),
                    "give --delay-correction none", ExitCode::usage);
}

double median_after_first(std::vector<double> seconds) {
  if (seconds.size() > 1) seconds.erase(seconds.begin());  // it warms caches up
  return median(std::move(seconds));
}

class Trainer {
 public:
  Trainer(RankModel& model, const Profile& profile, const Plan& plan, const Schedule& schedule,
          const DataSplits& data, Transport& transport, const TrainOptions& options, TrainObserver& observer)
      : model_(model),
        profile_(profile),
        plan_(plan),
        data_(data),
        transport_(transport),
        job_(transport.job()),
        options_(options),
        observer_(observer),
        work_(std::in_place, model, profile, plan, schedule, data, transport, options,
              BatchPosition{options.start.epoch, options.start.batch}),
        has_hits_(has_hits(model.graph())),
        judged_by_loss_(!has_hits_ || model.graph().find("tokens") >= 0),
        test_size_(data.test->size()),
        nan_policy_(options.on_nan, model.graph(), job_, schedule.delays.empty()),
        per_epoch_(work_->samples.sampler().batches()),
        period_(options.evaluate_every > 0 ? options.evaluate_every : per_epoch_),
        total_(total_steps(options, per_epoch_)),
        position_(options.start),
        best_(options.patience, options.start.best),
        last_(options.start.last),
        checkpointer_(options.checkpoint, options.start, model, work_->seat, transport,
                      [&](const CheckpointReport& report) { observer.on_checkpoint(report); }),
        boundary_(job_, checkpointer_, options.deadline, StepsUnderWay::lag(options, job_),
                  total_ - options.start.step, schedule.steps),
        results_(job_, boundary_),
        steps_(options, job_, results_, nan_policy_, time_, per_epoch_,
               [this](const EndedStep& ended) { take(ended); }),
        period_s_before_(options.start.epoch_s) {
    check_correction(options.correction, model.graph(), plan, schedule);
    if (options.moves) boundary_.ask_for_moves([this] { return std::exchange(wants_move_, false); });
    steps_.use(*work_);
  }

  TrainResult run() {
    TrainResult result;
    StopRequests::work_begins();
    time_.enter(Spent::other);
    if (position_.step > 0 && ends_period()) end_period();  // it was saved before its evaluation
    while (position_.step < total_ && !ends_early()) {
      if (ends_period()) begin_period();
      const bool traced = position_.step == traced_step();
      const int count = steps_to_begin();
      steps_.begin(position_, count, traced);
      if (options_.on_nan == OnNan::rewind && !nan_policy_.skipped_because().empty()) rewind();
      if (traced) result.events = gather_events(job_, first_steps(work_->schedule, count), steps_.events());
      pass_boundary(count);
      if (ends_period()) end_period();
    }
    steps_.drain();
    if (ends_early()) boundary_.end_early();
    if (checkpointer_.on() && !checkpointer_.has(position_.step)) save();
    if (checkpointer_.on()) steps_.spend(Spent::checkpoint);
    result.unsaved = checkpointer_.finish();
    if (!result.unsaved.empty() && !checkpointer_.newest().empty())
      result.unsaved += "; the newest complete checkpoint is " + checkpointer_.newest();
    tell_times();
    result.steps = position_.step;
    result.memory_bytes = work_->training.bytes();
    result.best = best_.best();
    result.last = last_;
    if (ends_early())
      result.ended_early = fmt::format("{} evaluations after that of step {} were not better",
                                       result.best.since, result.best.step);
    result.step_s = median_after_first(steps_.seconds());
    result.loss = position_.loss;
    result.accuracy = accuracy_;
    result.bad_test = bad_test_;
    return result;
  }

 private:
  int64_t traced_step() const {
    return options_.trace ? std::min<int64_t>(options_.start.step + 3, total_ - 1) : -1;
  }

  // Says whether an evaluation follows the step that was done last, or it is the beginning.
  bool ends_period() const { return position_.step % period_ == 0; }
  bool ends_early() const { return best_.exhausted() && position_.step < total_; }

  void begin_period() {
    period_start_ = Clock::now();
    position_.best = best_.best();
    position_.last = last_;
    position_.epoch_steps = 0;
    position_.epoch_loss = position_.epoch_correct = period_s_before_ = 0;
  }

  // Returns how many of the steps in a row come before the pipeline has to drain.
  int steps_to_begin() const {
    const int64_t to_evaluation = period_ - position_.step % period_;
    int64_t count = std::min({int64_t(work_->schedule.steps), to_evaluation, total_ - position_.step});
    if (options_.correction.synchronous(position_.step)) return 1;
    if (position_.step < traced_step()) count = std::min(count, traced_step() - position_.step);
    for (int64_t n = 1; n < count; ++n)
      if (checkpointer_.due_at(position_.step + n)) return int(n);
    return int(count);
  }

  void take(const EndedStep& ended) {
    count(ended.results.sum);
    if (job_.rank() == 0) report(ended);
    if (options_.moves)
      look_for_a_move({ended.step, total_ - ended.step - 1, ended.seconds, ended.results.busy_s});
  }

  void look_for_a_move(const StepMeasure& step) {
    std::optional<Division> better = options_.moves->see(step);
    if (!better) return;
    next_ = std::move(better);
    wants_move_ = true;
  }

  // Into the sums since the last evaluation, where the step was not skipped.
  void count(const StepResult& sum) {
    position_.loss = sum.loss / options_.batch;
    if (has_hits_) accuracy_ = sum.correct / options_.batch;
    if (!nan_policy_.skipped_because().empty()) return;
    position_.epoch_loss += sum.loss;
    position_.epoch_correct += sum.correct;
    ++position_.epoch_steps;
  }

  void report(const EndedStep& ended) {
    observer_.on_step({.step = ended.step,
                       .total_steps = total_,
                       .epoch = ended.epoch,
                       .loss = position_.loss,
                       .accuracy = accuracy_.value_or(NAN),
                       .rate = ended.rate,
                       .seconds = ended.seconds,
                       .images_per_s = options_.batch / ended.seconds,
                       .skipped_because = nan_policy_.skipped_because(),
                       .skipped = nan_policy_.skipped()});
  }

  // The state of the last checkpoint, and on with the next batch. All results are taken before, because what
  // ranks say of the checkpoint under way comes with them.
  void rewind() {
    steps_.drain();
    job_.activity().doing("going back to the last checkpoint");
    if (!checkpointer_.rewind())
      throw Error(nan_policy_.skipped_because(),
                  "there is no checkpoint to go back to yet: use a smaller --lr", ExitCode::not_a_number);
  }

  // Between two steps: the place to save, and to stop. What is to be after one of several steps in a row is
  // done after the last of them.
  void pass_boundary(int steps) {
    steps_.spend(Spent::waiting);  // for rank 0's answer
    const StopVerdict verdict = boundary_.pass_step(steps);
    steps_.spend(Spent::other);
    if (verdict.move && position_.step < total_) move();
    if (verdict.save || checkpointer_.due_at(position_.step) ||
        (checkpointer_.on() && position_.step == total_))
      save();
    if (!verdict.stop.empty()) stop(verdict);
  }

  // Goes over to the division that rank 0 wants: a plan has its own checkpoints, so the one under way ends
  // before.
  void move() {
    steps_.drain();
    const auto start = Clock::now();
    job_.activity().doing("going over to another plan");
    checkpointer_.finish();
    const bool first = job_.rank() == 0;
    const Plan next =
        plan_from_json(job_.broadcast(first ? to_json(next_->plan, profile_) : ""), "rank 0's plan");
    const Schedule schedule =
        parse_schedule(job_.broadcast(first ? print(next_->schedule) : ""), "rank 0's schedule");
    if (!options_.has_room(next, schedule)) {
      if (first) options_.moves->refused();
      return;
    }
    const MoveReport report{position_.step, count_moved(model_.graph(), model_.optimiser(), plan_, next)};
    work_.reset();
    move_state(model_, plan_, next, transport_);
    plan_ = next;
    work_.emplace(model_, profile_, plan_, schedule, data_, transport_, options_,
                  BatchPosition{position_.epoch, position_.batch});
    steps_.use(*work_);
    options_.on_move(plan_, schedule);
    checkpointer_.divided_anew(first ? next_->setting : Facts());
    if (first) options_.moves->moved({report.step, report.moved, seconds_since(start)});
  }

  void save(CheckpointKind kind = CheckpointKind::of_step) {
    steps_.drain();
    position_.epoch_s = period_s();
    const Spent before = time_.enter(Spent::checkpoint);
    checkpointer_.begin(position_, kind);
    time_.enter(before);
  }

  [[noreturn]] void stop(const StopVerdict& verdict) {
    steps_.drain();
    const std::string what = fmt::format("stopped by {} after step {}", verdict.stop, position_.step);
    if (!checkpointer_.on()) {
      tell_times();
      throw Error(what + ", and nothing was saved", "train with --checkpoint DIR to be able to go on",
                  ExitCode(128 + verdict.signal));
    }
    if (!checkpointer_.has(position_.step)) save();
    time_.enter(Spent::checkpoint);
    const std::string failure = checkpointer_.finish(), newest = checkpointer_.newest();
    tell_times();
    if (!failure.empty())
      throw Error(fmt::format("{}, but that could not be saved: {}", what, failure),
                  newest.empty() ? "" : "the newest complete checkpoint is " + newest);
    throw Error(fmt::format("{}, with everything saved in {}", what, newest),
                "the same command with --resume auto goes on", ExitCode::stopped);
  }

  void tell_times() {
    time_.stop();
    time_.set_starved(starved_.seconds());
    std::vector<TimeSheet> all;
    for (const std::string& text : job_.gather(time_.text())) all.push_back(TimeSheet::from_text(text));
    if (job_.rank() == 0) observer_.on_end(all);
  }

  double period_s() const { return period_s_before_ + seconds_since(period_start_); }

  void end_period() {
    steps_.drain();
    EvaluationReport report{.epoch = (position_.step - 1) / per_epoch_,
                            .step = position_.step,
                            .ends_epoch = position_.batch == 0,
                            .train_s = period_s()};
    const double samples = double(std::max<int64_t>(position_.epoch_steps, 1)) * options_.batch;
    report.train_loss = position_.epoch_loss / samples;
    report.train_accuracy = has_hits_ ? position_.epoch_correct / samples : NAN;
    const auto start = Clock::now();
    time_.enter(Spent::test);
    const StepResult test = evaluate();
    time_.enter(Spent::other);
    report.test_s = seconds_since(start);
    report.test_loss = test.loss / double(test_size_);
    const double accuracy = test.correct / double(test_size_);
    report.test_accuracy = has_hits_ ? accuracy : NAN;
    report.output_sums = work_->evaluation.output_sums();
    const BestWatch::Judgement judged =
        best_.judge(job_, report.step, report.test_loss, judged_by_loss_ ? 0 : accuracy);
    last_ = {.step = report.step, .loss = report.test_loss, .accuracy = accuracy};
    if (job_.rank() == 0) observer_.on_evaluation(report);
    look_at_test(report, judged.finite);
    if (judged.better && options_.keep_best && checkpointer_.on()) save(CheckpointKind::best);
  }

  // A test loss that is no finite number, while every step's was: a weight or a statistic must have gone
  // wrong.
  void look_at_test(const EvaluationReport& report, bool finite) {
    bad_test_ = finite ? "" : first_bad_number(model_, job_);
    if (finite) return;
    const std::string when =
        report.ends_epoch ? fmt::format("epoch {}", report.epoch + 1) : fmt::format("step {}", report.step);
    bad_test_ = fmt::format("the test loss after {} is no finite number: {}", when,
                            bad_test_.empty() ? "the network's outputs are too large" : bad_test_);
    if (options_.on_nan == OnNan::abort)
      throw Error(bad_test_, nan_policy_.advice("use a smaller --lr", "go on all the same"),
                  ExitCode::not_a_number);
  }

  // Every image of the test set once.
  StepResult evaluate() {
    StopVerdict verdict;
    const StepResult mine = work_->evaluation.run([&] {
      verdict = boundary_.pass_batch();
      return verdict.stop.empty();
    });
    if (!verdict.stop.empty()) stop(verdict);
    job_.activity().doing("waiting for the other ranks to end the evaluation");
    results_.tell(mine);
    return results_.take().sum;
  }

  RankModel& model_;
  const Profile& profile_;
  Plan plan_;
  const DataSplits& data_;
  Transport& transport_;
  Job& job_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  std::optional<RankWork> work_;
  const bool has_hits_, judged_by_loss_;
  const int64_t test_size_;
  NanPolicy nan_policy_;
  const int64_t per_epoch_, period_, total_;  // steps; an evaluation follows each period
  TrainPosition position_;
  BestWatch best_;
  LastEvaluation last_;
  std::optional<double> accuracy_;  // of the last step
  std::string bad_test_;
  Checkpointer checkpointer_;
  StepBoundary boundary_;
  StepResults results_;
  TimeSheet time_;
  StepsUnderWay steps_;
  Clock::time_point period_start_ = Clock::now();
  double period_s_before_;        // of the period, before this run
  std::optional<Division> next_;  // on rank 0: the one that it wants to go over to, or did last
  bool wants_move_ = false;
  const StarvedTime starved_;
};

}  // namespace

bool agree_before_update(OnNan on_nan, double clip_norm) { return on_nan != OnNan::abort || clip_norm > 0; }

int64_t total_steps(const TrainOptions& options, int64_t batches_per_epoch) {
  const int64_t whole = int64_t(options.epochs) * batches_per_epoch;
  if (options.steps == 0) return whole;
  return options.epochs == 0 ? options.steps : std::min(options.steps, whole);
}

TrainResult train(RankModel& model, const Profile& profile, const Plan& plan, const Schedule& schedule,
                  const DataSplits& data, Transport& transport, const TrainOptions& options,
                  TrainObserver& observer) {
  return Trainer(model, profile, plan, schedule, data, transport, options, observer).run();
}

}  // namespace antichain
