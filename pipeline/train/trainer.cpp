#include "pipeline/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "framework/loss_mean.h"
#include "pipeline/host/core_time.h"
#include "pipeline/host/fault.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "pipeline/host/stop_signals.h"
#include "pipeline/train/best_watch.h"
#include "pipeline/train/exchange_norm.h"
#include "pipeline/train/rank_work.h"
#include "pipeline/train/step_gather.h"
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
        boundary_(job_, checkpointer_, options.deadline, lag(), total_ - options.start.step, schedule.steps),
        results_(job_, boundary_),
        period_s_before_(options.start.epoch_s) {
    check_correction(options.correction, model.graph(), plan, schedule);
    ANTICHAIN_CHECK(!agrees() || lag() == 0, "steps are apart where ranks agree before an update");
    if (options.moves) boundary_.ask_for_moves([this] { return std::exchange(wants_move_, false); });
    connect();
  }

  TrainResult run() {
    TrainResult result;
    StopRequests::work_begins();
    time_.enter(Spent::other);
    if (position_.step > 0 && ends_period()) end_period();  // it was saved before its evaluation
    while (position_.step < total_ && !ends_early()) {
      if (ends_period()) begin_period();
      const bool traced = position_.step == traced_step();
      if (traced) begin_together();
      const int count = steps_to_begin();
      begin_steps(count, traced);
      while (int(begun_.size()) >= (traced ? 1 : steps_at_once())) end_step();
      if (traced) result.events = gather_events(job_, first_steps(work_->schedule, count), events_);
      pass_boundary(count);
      if (ends_period()) end_period();
    }
    drain();
    if (ends_early()) boundary_.end_early();
    if (checkpointer_.on() && !checkpointer_.has(position_.step)) save();
    if (checkpointer_.on()) spend(Spent::checkpoint);
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
    result.step_s = median_after_first(std::move(step_seconds_));
    result.loss = position_.loss;
    result.accuracy = accuracy_;
    result.bad_test = bad_test_;
    return result;
  }

 private:
  // Has the runner ask here before it updates, and tell where its time goes.
  void connect() {
    work_->training.set_judge(
        [this](const NumberReport& mine) {
          const size_t step = in_a_row() ? judged_++ : 0;
          return nan_policy_.may_update(mine, begun_[step].step);
        },
        agrees());
    if (options_.clip_norm > 0 && job_.size() == 1)
      work_->training.set_clip(options_.clip_norm);
    else if (options_.clip_norm > 0)
      work_->training.set_clip(
          [this](const SquaresByName& mine) { return agree_on_clip_factor(mine, options_.clip_norm, job_); });
    work_->training.set_time_sheet(&time_);
    if (in_a_row() && lag() > 0) work_->training.set_between_steps([this] { end_step(); });
  }

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

  // By so many steps rank 0 may be behind with results. A rank alone has them at once.
  int lag() const { return options_.between_ranks == Steps::overlapped && job_.size() > 1 ? 1 : 0; }

  // Says whether something has to be known before an update: a rank alone clips without asking.
  bool agrees() const {
    return agree_before_update(options_.on_nan, job_.size() > 1 ? options_.clip_norm : 0);
  }

  // So many steps of this rank may be under way, where its device allows that. Ranks that agree before an
  // update, or do not overlap steps, have one.
  int steps_at_once() const {
    const bool apart = agrees() || (job_.size() > 1 && options_.between_ranks == Steps::apart);
    return apart ? 1 : work_->training.steps_at_once();
  }

  // A step that this rank has begun, until its results are known.
  struct BegunStep {
    int64_t step = 0, epoch = 0;
    float rate = 0;
    Clock::time_point start;
    double seconds = 0;
    int of = 1;  // those that began and end with it, where it is the first of them; else 0
  };

  bool in_a_row() const { return work_->schedule.steps > 1; }
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

  void begin_steps(int count, bool traced) {
    inputs_.clear();
    judged_ = 0;
    TrainPosition at = position_;
    for (int n = 0; n < count; ++n) {
      BegunStep begun{.step = at.step, .epoch = at.epoch, .of = lag() > 0 ? 1 : n == 0 ? count : 0};
      job_.activity().doing(fmt::format("beginning of step {}", begun.step));
      fault_point(job_.rank(), begun.step);
      place_source(at);
      begun.rate = options_.rate(begun.step);
      begun.start = Clock::now();
      begun_.push_back(begun);
      inputs_.push_back(
          {.step = uint64_t(begun.step),
           .seed = options_.seed,
           .batch = options_.batch,
           .rate = begun.rate,
           .traced = traced,
           .means = work_->means.means_of_batch(work_->samples, work_->seat.microbatches, options_.batch),
           .delay_power = options_.correction.power(begun.step),
           .synchronous = options_.correction.synchronous(begun.step)});
      ++at.step;
      if (++at.batch == per_epoch_) ++at.epoch, at.batch = 0;
    }
    if (in_a_row()) place_source(position_);
    work_->training.begin(inputs_, work_->samples);
    position_.step = at.step, position_.epoch = at.epoch, position_.batch = at.batch;
  }

  // Ends the oldest step that was begun. Its time is what passed since its start, or since the end of the
  // step in front of it. Steps that end together share their time. Where steps are in a row, the mean of the
  // row counts, which has the time of filling and draining the pipeline.
  void end_step() {
    StepResult mine = work_->training.finish();
    BegunStep ended = begun_.front();
    begun_.pop_front();
    if (judged_ > 0) --judged_;
    events_ = std::move(mine.events);
    results_.tell(mine, time_.computing_s() - std::exchange(computed_s_, time_.computing_s()));
    if (lag() == 0) wait_for_all();
    if (lag() > 0) settle(lag() - 1);
    if (ended.of > 0) seconds_ = seconds_since(std::max(ended.start, last_end_)) / ended.of;
    ended.seconds = seconds_;
    last_end_ = Clock::now();
    row_seconds_.push_back(ended.seconds);
    if (!in_a_row() || begun_.empty()) {
      const double row_s = std::accumulate(row_seconds_.begin(), row_seconds_.end(), 0.);
      step_seconds_.insert(step_seconds_.end(), row_seconds_.size(), row_s / double(row_seconds_.size()));
      row_seconds_.clear();
    }
    ended_.push_back(ended);
    settle(lag());
    if (options_.on_nan == OnNan::rewind && !nan_policy_.skipped_because().empty()) rewind();
  }

  // Takes the results of steps that have ended, the oldest first, until only the newest `behind` are left.
  void settle(int behind) {
    while (int(ended_.size()) > behind) {
      job_.activity().doing("waiting for the other ranks to end the step");
      spend(Spent::waiting);
      const auto [sum, numbers, busy_s] = results_.take();
      spend(Spent::other);
      const BegunStep ended = ended_.front();
      ended_.pop_front();
      nan_policy_.conclude(numbers, ended.step);
      count(sum);
      if (job_.rank() == 0) report(sum, ended);
      if (options_.moves) look_for_a_move({ended.step, total_ - ended.step - 1, ended.seconds, busy_s});
    }
  }

  void look_for_a_move(const StepMeasure& step) {
    std::optional<Division> better = options_.moves->see(step);
    if (!better) return;
    next_ = std::move(better);
    wants_move_ = true;
  }

  // Ends all steps, and takes their results.
  void drain() {
    while (!begun_.empty()) end_step();
    settle(0);
  }

  // Enters what the host does from now on, unless its device has work: then the device's times count.
  void spend(Spent kind) {
    if (begun_.empty()) time_.enter(kind);
  }

  // Until all ranks have ended the step.
  void wait_for_all() {
    job_.activity().doing("waiting for the other ranks to end the step");
    spend(Spent::waiting);
    job_.barrier();
    spend(Spent::other);
  }

  void begin_together() {
    drain();
    wait_for_all();
  }

  void place_source(const TrainPosition& at) {
    work_->samples.position = {.epoch = at.epoch, .batch = at.batch};
    work_->samples.next.reset();
    if (at.step + 1 < total_)
      work_->samples.next =
          at.batch + 1 < per_epoch_ ? BatchPosition{at.epoch, at.batch + 1} : BatchPosition{at.epoch + 1, 0};
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

  void report(const StepResult& sum, const BegunStep& ended) {
    observer_.on_step({.step = ended.step,
                       .total_steps = total_,
                       .epoch = ended.epoch,
                       .loss = sum.loss / options_.batch,
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
    drain();
    job_.activity().doing("going back to the last checkpoint");
    if (!checkpointer_.rewind())
      throw Error(nan_policy_.skipped_because(),
                  "there is no checkpoint to go back to yet: use a smaller --lr", ExitCode::not_a_number);
  }

  // Between two steps: the place to save, and to stop. What is to be after one of several steps in a row is
  // done after the last of them.
  void pass_boundary(int steps) {
    spend(Spent::waiting);  // for rank 0's answer
    const StopVerdict verdict = boundary_.pass_step(steps);
    spend(Spent::other);
    if (verdict.move && position_.step < total_) move();
    if (verdict.save || checkpointer_.due_at(position_.step) ||
        (checkpointer_.on() && position_.step == total_))
      save();
    if (!verdict.stop.empty()) stop(verdict);
  }

  // Goes over to the division that rank 0 wants: a plan has its own checkpoints, so the one under way ends
  // before.
  void move() {
    drain();
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
    connect();
    options_.on_move(plan_, schedule);
    step_seconds_.clear();  // from here on they are those of this plan
    checkpointer_.divided_anew(first ? next_->setting : Facts());
    if (first) options_.moves->moved({report.step, report.moved, seconds_since(start)});
  }

  void save(CheckpointKind kind = CheckpointKind::of_step) {
    drain();
    position_.epoch_s = period_s();
    const Spent before = time_.enter(Spent::checkpoint);
    checkpointer_.begin(position_, kind);
    time_.enter(before);
  }

  [[noreturn]] void stop(const StopVerdict& verdict) {
    drain();
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
    drain();
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
  std::deque<BegunStep> begun_;                     // the oldest first
  std::vector<StepInput> inputs_;                   // of those that began last
  size_t judged_ = 0;                               // of those in a row that have not ended
  double seconds_ = 0;                              // of each step that ended last
  std::deque<BegunStep> ended_;                     // whose results are not known yet
  Clock::time_point last_end_;                      // of a step
  std::vector<double> step_seconds_, row_seconds_;  // the latter: of a row that has not ended
  std::vector<Event> events_;                       // of the step that ended last, where it was traced
  Clock::time_point period_start_ = Clock::now();
  double period_s_before_;  // of the period, before this run
  TimeSheet time_;
  double computed_s_ = 0;         // of it, until the step that ended last
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
