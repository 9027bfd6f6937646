#include "pipeline/train/steps_under_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "pipeline/host/fault.h"
#include "pipeline/host/seconds.h"
#include "pipeline/train/exchange_norm.h"

namespace antichain {

StepsUnderWay::StepsUnderWay(const TrainOptions& options, Job& job, StepResults& results,
                             NanPolicy& nan_policy, TimeSheet& time, int64_t batches_per_epoch,
                             std::function<void(const EndedStep&)> ended)
    : options_(options),
      job_(job),
      results_(results),
      nan_policy_(nan_policy),
      time_(time),
      per_epoch_(batches_per_epoch),
      total_(total_steps(options, per_epoch_)),
      tell_(std::move(ended)) {
  ANTICHAIN_CHECK(!agrees() || lag(options_, job_) == 0,
                  "steps are apart where ranks agree before an update");
}

int StepsUnderWay::lag(const TrainOptions& options, const Job& job) {
  return options.between_ranks == Steps::overlapped && job.size() > 1 ? 1 : 0;
}

// Has the runner ask here before it updates, and tell where its time goes.
void StepsUnderWay::use(RankWork& work) {
  work_ = &work;
  seconds_.clear();
  work.training.set_judge(
      [this](const NumberReport& mine) {
        const size_t step = in_a_row() ? judged_++ : 0;
        return nan_policy_.may_update(mine, begun_[step].of.step);
      },
      agrees());
  if (options_.clip_norm > 0 && job_.size() == 1)
    work.training.set_clip(options_.clip_norm);
  else if (options_.clip_norm > 0)
    work.training.set_clip(
        [this](const SquaresByName& mine) { return agree_on_clip_factor(mine, options_.clip_norm, job_); });
  work.training.set_time_sheet(&time_);
  if (in_a_row() && lag(options_, job_) > 0) work.training.set_between_steps([this] { end_step(); });
}

// Says whether something has to be known before an update: a rank alone clips without asking.
bool StepsUnderWay::agrees() const {
  return agree_before_update(options_.on_nan, job_.size() > 1 ? options_.clip_norm : 0);
}

// So many steps of this rank may be under way, where its device allows that. Ranks that agree before an
// update, or do not overlap steps, have one.
int StepsUnderWay::steps_at_once() const {
  const bool apart = agrees() || (job_.size() > 1 && options_.between_ranks == Steps::apart);
  return apart ? 1 : work_->training.steps_at_once();
}

void StepsUnderWay::begin(TrainPosition& at, int count, bool traced) {
  if (traced) {
    drain();
    wait_for_all();
  }
  inputs_.clear();
  judged_ = 0;
  const TrainPosition first = at;
  for (int n = 0; n < count; ++n) {
    job_.activity().doing(fmt::format("beginning of step {}", at.step));
    fault_point(job_.rank(), at.step);
    place_source(at);
    const float rate = options_.rate(at.step);
    begun_.push_back({.of = {.step = at.step, .epoch = at.epoch, .rate = rate},
                      .start = Clock::now(),
                      .end_together = lag(options_, job_) > 0 ? 1
                                      : n == 0                ? count
                                                              : 0});
    inputs_.push_back(
        {.step = uint64_t(at.step),
         .seed = options_.seed,
         .batch = options_.batch,
         .rate = rate,
         .traced = traced,
         .means = work_->means.means_of_batch(work_->samples, work_->seat.microbatches, options_.batch),
         .delay_power = options_.correction.power(at.step),
         .synchronous = options_.correction.synchronous(at.step)});
    ++at.step;
    if (++at.batch == per_epoch_) ++at.epoch, at.batch = 0;
  }
  if (in_a_row()) place_source(first);
  work_->training.begin(inputs_, work_->samples);
  while (int(begun_.size()) >= (traced ? 1 : steps_at_once())) end_step();
}

void StepsUnderWay::place_source(const TrainPosition& at) {
  work_->samples.position = {.epoch = at.epoch, .batch = at.batch};
  work_->samples.next.reset();
  if (at.step + 1 < total_)
    work_->samples.next =
        at.batch + 1 < per_epoch_ ? BatchPosition{at.epoch, at.batch + 1} : BatchPosition{at.epoch + 1, 0};
}

// Ends the oldest step that was begun. Its time is what passed since its start, or since the end of the step
// in front of it. Steps that end together share their time.
void StepsUnderWay::end_step() {
  StepResult mine = work_->training.finish();
  Begun begun = std::move(begun_.front());
  begun_.pop_front();
  if (judged_ > 0) --judged_;
  events_ = std::move(mine.events);
  results_.tell(mine, time_.computing_s() - std::exchange(computed_s_, time_.computing_s()));
  const int behind = lag(options_, job_);
  if (behind == 0) wait_for_all();
  if (behind > 0) settle(behind - 1);
  if (begun.end_together > 0) last_s_ = seconds_since(std::max(begun.start, last_end_)) / begun.end_together;
  begun.of.seconds = last_s_;
  last_end_ = Clock::now();
  row_seconds_.push_back(last_s_);
  if (!in_a_row() || begun_.empty()) {
    const double row_s = std::accumulate(row_seconds_.begin(), row_seconds_.end(), 0.);
    seconds_.insert(seconds_.end(), row_seconds_.size(), row_s / double(row_seconds_.size()));
    row_seconds_.clear();
  }
  ended_.push_back(std::move(begun.of));
  settle(behind);
}

// Takes the results of steps that have ended, the oldest first, until only the newest `behind` are left.
void StepsUnderWay::settle(int behind) {
  while (int(ended_.size()) > behind) {
    job_.activity().doing("waiting for the other ranks to end the step");
    spend(Spent::waiting);
    EndedStep ended = std::move(ended_.front());
    ended.results = results_.take();
    spend(Spent::other);
    ended_.pop_front();
    nan_policy_.conclude(ended.results.numbers, ended.step);
    tell_(ended);
  }
}

void StepsUnderWay::drain() {
  while (!begun_.empty()) end_step();
  settle(0);
}

void StepsUnderWay::wait_for_all() {
  job_.activity().doing("waiting for the other ranks to end the step");
  spend(Spent::waiting);
  job_.barrier();
  spend(Spent::other);
}

void StepsUnderWay::spend(Spent kind) {
  if (begun_.empty()) time_.enter(kind);
}

}  // namespace antichain
