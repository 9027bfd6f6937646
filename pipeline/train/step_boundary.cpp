#include "pipeline/train/step_boundary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "pipeline/host/stop_signals.h"

namespace antichain {

StepBoundary::StepBoundary(Job& job, Checkpointer& checkpointer, std::optional<Deadline> deadline)
    : job_(job), checkpointer_(checkpointer), deadline_(std::move(deadline)) {}

std::string StepBoundary::status() {
  return fmt::format("{} {}", StopRequests::heard(), checkpointer_.status());
}

void StepBoundary::take_status(int rank, const std::string& status) {
  const size_t blank = status.find(' ');
  if (const int signal = std::stoi(status.substr(0, blank)); signal_ == 0) signal_ = signal;
  checkpointer_.take_status(rank, status.substr(blank + 1));
}

StopVerdict StepBoundary::pass_step() {
  checkpointer_.tend();
  return steps_.answers() ? answer(steps_) : StopVerdict();
}

StopVerdict StepBoundary::pass_batch() {
  if (!batches_.answers()) return {};
  const auto all = job_.gather(status());
  for (size_t rank = 0; rank < all.size(); ++rank) take_status(int(rank), all[rank]);
  checkpointer_.tend();
  return answer(batches_);
}

void StepBoundary::Pace::plan_next() {
  const auto now = Clock::now();
  unit_s = std::chrono::duration<double>(now - last_at).count() / double(passed - last);
  last = passed, last_at = now;
  next = passed + std::clamp<int64_t>(int64_t(wanted_s / std::max(unit_s, 1e-6)), 1, 1000);
}

StopVerdict StepBoundary::answer(Pace& pace) {
  pace.plan_next();
  const StopVerdict mine = decide(pace);
  std::istringstream in(
      job_.broadcast(fmt::format("{} {:d} {} {}", pace.next, mine.save, mine.signal, mine.stop)));
  StopVerdict all;
  in >> pace.next >> all.save >> all.signal;
  std::getline(in >> std::ws, all.stop);
  return all;
}

StopVerdict StepBoundary::decide(const Pace& pace) const {
  if (signal_ != 0) return {.signal = signal_, .stop = signal_name(signal_)};
  if (deadline_) {
    // Before saving is over, the steps up to the next answer may pass, and the checkpoint may be slower than
    // the last one.
    const double left_s = std::chrono::duration<double>(deadline_->at - Clock::now()).count();
    const double margin_s = 2 * std::max(pace.unit_s, pace.wanted_s) + 2 * checkpointer_.cost_s() + 1;
    if (left_s < margin_s) return {.stop = "the end of " + deadline_->name};
  }
  return {.save = checkpointer_.due_now()};
}

}  // namespace antichain
