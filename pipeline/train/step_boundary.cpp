#include "pipeline/train/step_boundary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "pipeline/host/stop_signals.h"

namespace antichain {

StepBoundary::StepBoundary(Job& job, Checkpointer& checkpointer, std::optional<Deadline> deadline, int lag,
                           int64_t steps, int in_a_row)
    : job_(job),
      checkpointer_(checkpointer),
      deadline_(std::move(deadline)),
      last_asked_(steps - int64_t(lag) * in_a_row),
      steps_{.wanted_s = 0.2, .lag = lag} {}

std::string StepBoundary::status() {
  return fmt::format("{} {}", StopRequests::heard(), checkpointer_.status());
}

void StepBoundary::take_status(int rank, const std::string& status) {
  const size_t blank = status.find(' ');
  if (const int signal = std::stoi(status.substr(0, blank)); signal_ == 0) signal_ = signal;
  checkpointer_.take_status(rank, status.substr(blank + 1));
}

StopVerdict StepBoundary::pass_step(int together) {
  checkpointer_.tend();
  ++steps_.passed;
  done_ += together;
  StopVerdict verdict;
  const auto take = [&] {
    if (steps_.passed == holds_after_) verdict = read(job_.rank() == 0 ? own_answer_ : job_.take(0), steps_);
  };
  if (steps_.lag > 0) take();  // it says when the next one is given
  if (steps_.passed == steps_.next && done_ <= last_asked_) {
    holds_after_ = steps_.passed + steps_.lag;
    if (job_.rank() == 0) {
      own_answer_ = answer(steps_);
      for (int rank = 1; rank < job_.size(); ++rank) job_.post(rank, own_answer_);
    }
    if (steps_.lag == 0) take();
  }
  return verdict;
}

StopVerdict StepBoundary::pass_batch() {
  if (++batches_.passed < batches_.next) return {};
  const auto all = job_.gather(status());
  for (size_t rank = 0; rank < all.size(); ++rank) take_status(int(rank), all[rank]);
  checkpointer_.tend();
  return read(job_.broadcast(job_.rank() == 0 ? answer(batches_) : ""), batches_);
}

void StepBoundary::end_early() {
  if (job_.rank() != 0 && holds_after_ > steps_.passed) job_.take(0);
}

void StepBoundary::Rhythm::plan_next() {
  const auto now = Clock::now();
  unit_s = std::chrono::duration<double>(now - last_at).count() / double(passed - last);
  last = passed, last_at = now;
  next = passed + std::clamp<int64_t>(int64_t(wanted_s / std::max(unit_s, 1e-6)), std::max(1, lag), most);
}

std::string StepBoundary::answer(Rhythm& rhythm) const {
  rhythm.plan_next();
  const StopVerdict mine = decide(rhythm);
  return fmt::format("{} {:d} {:d} {} {}", rhythm.next, mine.save, mine.move, mine.signal, mine.stop);
}

StopVerdict StepBoundary::read(const std::string& answer, Rhythm& rhythm) {
  std::istringstream in(answer);
  StopVerdict verdict;
  in >> rhythm.next >> verdict.save >> verdict.move >> verdict.signal;
  std::getline(in >> std::ws, verdict.stop);
  return verdict;
}

StopVerdict StepBoundary::decide(const Rhythm& rhythm) const {
  if (signal_ != 0) return {.signal = signal_, .stop = signal_name(signal_)};
  if (deadline_) {
    // Before saving is over, the steps up to the next answer may pass, and the checkpoint may be slower than
    // the last one.
    const double left_s = std::chrono::duration<double>(deadline_->at - Clock::now()).count();
    const double margin_s =
        (2 + rhythm.lag) * std::max(rhythm.unit_s, rhythm.wanted_s) + 2 * checkpointer_.cost_s() + 1;
    if (left_s < margin_s) return {.stop = "the end of " + deadline_->name};
  }
  return {.save = checkpointer_.due_now(), .move = &rhythm == &steps_ && wants_move_()};
}

}  // namespace antichain
