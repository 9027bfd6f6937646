// A step is under way from its beginning until the results of all ranks are known. Where steps overlap, rank
// 0 hears of a step's results while the next one runs. A rank with a device begins a step before it waits for
// the one in front, so that the device does not wait for the host. Where a schedule has several steps in a
// row, they begin together.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "pipeline/train/rank_work.h"
#include "pipeline/train/step_gather.h"

namespace antichain {

// An EndedStep is what is known of a step in the end. The results are on rank 0, and empty elsewhere.
struct EndedStep {
  int64_t step = 0, epoch = 0;
  float rate = 0;
  double seconds = 0;
  Gathered results;
};

class StepsUnderWay {
 public:
  // `ended` is called for each step, the oldest first. Everything referred to must outlive this.
  StepsUnderWay(const TrainOptions&, Job&, StepResults&, NanPolicy&, TimeSheet&, int64_t batches_per_epoch,
                std::function<void(const EndedStep&)> ended);

  // Rank 0 may be behind with the results of so many steps. A rank alone has them at once.
  static int lag(const TrainOptions&, const Job&);

  // From now on steps are begun by this, which must outlive them. None is under way.
  void use(RankWork&);
  // Begins so many steps in a row, the first of them `at` this position, which becomes that of the step after
  // them. Then it ends as many as leave room for the next. Traced steps are alone, on all ranks.
  void begin(TrainPosition& at, int count, bool traced);
  // Ends all steps, and takes their results.
  void drain();
  // Enters what the host does from now on, unless its device has work: then the device's times count.
  void spend(Spent);

  const std::vector<Event>& events() const { return events_; }  // of the step that ended last, if traced
  // Returns what each step took since the last call of use(). Where steps are in a row, the mean of the row
  // counts, which has the time of filling and draining the pipeline.
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Begun {
    EndedStep of;
    Clock::time_point start;
    int end_together = 1;  // those that began and end with it, where it is the first of them; else 0
  };

  bool agrees() const;
  bool in_a_row() const { return work_->schedule.steps > 1; }
  int steps_at_once() const;
  void place_source(const TrainPosition&);
  void end_step();
  void settle(int behind);
  void wait_for_all();

  const TrainOptions& options_;
  Job& job_;
  StepResults& results_;
  NanPolicy& nan_policy_;
  TimeSheet& time_;
  const int64_t per_epoch_, total_;
  const std::function<void(const EndedStep&)> tell_;
  RankWork* work_ = nullptr;
  std::deque<Begun> begun_;        // the oldest first
  std::vector<StepInput> inputs_;  // of those that began last
  size_t judged_ = 0;              // of those in a row that have not ended
  std::deque<EndedStep> ended_;    // whose results are not known yet
  double last_s_ = 0;              // of each step that ended last
  Clock::time_point last_end_;
  std::vector<double> seconds_, row_seconds_;  // the latter: of a row that has not ended
  std::vector<Event> events_;
  double computed_s_ = 0;  // of the time sheet, until the step that ended last
};

}  // namespace antichain
