#include "pipeline/run/step_times.h"

#include <chrono>
#include <utility>

#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point moment(double s) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)));
}

}  // namespace

HostStepTimes::HostStepTimes(int rank, bool traced, TimeSheet* sheet)
    : rank_(rank), traced_(traced), sheet_(sheet), begin_s_(now_s()) {}

void HostStepTimes::start(const Action& action) {
  spend(spent_on(action.verb));
  if (traced_) events_.push_back({rank_, action, now_s() - begin_s_});
}

void HostStepTimes::end() {
  if (traced_) events_.back().end_s = now_s() - begin_s_;
}

void HostStepTimes::spend(Spent kind) {
  if (sheet_) sheet_->enter(kind);
}

std::vector<Event> HostStepTimes::finish() { return std::move(events_); }

StampedStepTimes::StampedStepTimes(int rank, bool traced, TimeSheet* sheet, DeviceStep& device)
    : rank_(rank), traced_(traced), sheet_(sheet), device_(device) {
  if (traced_ || sheet_) device_.tie_clocks(traced_);
  begin_s_ = now_s();
}

void StampedStepTimes::start(const Action& action) {
  spend(spent_on(action.verb));
  if (!traced_) return;
  events_.push_back({rank_, action});
  starts_.push_back(device_.stamp());
}

void StampedStepTimes::end() {
  if (traced_) ends_.push_back(device_.stamp());
}

void StampedStepTimes::spend(Spent kind) {
  if (sheet_ && (spent_.empty() || spent_.back().kind != kind)) spent_.push_back({kind, device_.stamp()});
}

std::vector<Event> StampedStepTimes::finish() {
  for (const auto& [kind, stamp] : spent_) sheet_->enter(kind, moment(device_.at_s(stamp)));
  for (size_t i = 0; i < starts_.size(); ++i) {
    events_[i].start_s = device_.at_s(starts_[i]) - begin_s_;
    events_[i].end_s = device_.at_s(ends_[i]) - begin_s_;
  }
  return std::move(events_);
}

}  // namespace antichain
