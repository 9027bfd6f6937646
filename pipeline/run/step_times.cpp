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

StepTimes::StepTimes(int rank, bool traced, DeviceStep* device, TimeSheet* sheet)
    : rank_(rank), traced_(traced), device_(device), sheet_(sheet) {
  if (device_ && (traced_ || sheet_)) device_->tie_clocks(traced_);
  begin_s_ = now_s();
}

void StepTimes::start(const Action& action) {
  spend(spent_on(action.verb));
  if (!traced_) return;
  events_.push_back({rank_, action});
  if (device_)
    starts_.push_back(device_->stamp());
  else
    events_.back().start_s = now_s() - begin_s_;
}

void StepTimes::end() {
  if (!traced_) return;
  if (device_)
    ends_.push_back(device_->stamp());
  else
    events_.back().end_s = now_s() - begin_s_;
}

void StepTimes::spend(Spent kind) {
  if (!sheet_) return;
  if (!device_)
    sheet_->enter(kind);
  else if (spent_.empty() || spent_.back().kind != kind)
    spent_.push_back({kind, device_->stamp()});
}

std::vector<Event> StepTimes::finish() {
  for (const auto& [kind, stamp] : spent_) sheet_->enter(kind, moment(device_->at_s(stamp)));
  for (size_t i = 0; i < starts_.size(); ++i) {
    events_[i].start_s = device_->at_s(starts_[i]) - begin_s_;
    events_[i].end_s = device_->at_s(ends_[i]) - begin_s_;
  }
  return std::move(events_);
}

}  // namespace antichain
