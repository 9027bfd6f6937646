// StepTimes record when a rank did what within a step. In host memory an action takes as long as its call
// (HostStepTimes). On a device the calls only start work. There the times are the device's: stamps in the
// stream that the rank computes in, read when the step is done (StampedStepTimes).
#pragma once

#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

// An object is for one step, which begins when it is made. The sheet may be nullptr.
class StepTimes {
 public:
  virtual ~StepTimes() = default;

  virtual void start(const Action&) = 0;
  virtual void end() = 0;
  virtual void spend(Spent) = 0;  // within an action, or after the last
  // Ends the step: from here on time is `other`, until a next step begins or the sheet's owner says something
  // else.
  void end_step() { spend(Spent::other); }
  // Call this when the device is done. It brings the sheet up to date, and returns the events of a traced
  // step, in seconds since the step's beginning.
  virtual std::vector<Event> finish() = 0;
};

class HostStepTimes final : public StepTimes {
 public:
  HostStepTimes(int rank, bool traced, TimeSheet*);
  void start(const Action&) override;
  void end() override;
  void spend(Spent) override;
  std::vector<Event> finish() override;

 private:
  const int rank_;
  const bool traced_;
  TimeSheet* const sheet_;
  const double begin_s_;
  std::vector<Event> events_;
};

class StampedStepTimes final : public StepTimes {
 public:
  StampedStepTimes(int rank, bool traced, TimeSheet*, DeviceStep&);
  void start(const Action&) override;
  void end() override;
  void spend(Spent) override;
  std::vector<Event> finish() override;

 private:
  struct Stamped {
    Spent kind;
    Stamp stamp;
  };
  const int rank_;
  const bool traced_;
  TimeSheet* const sheet_;
  DeviceStep& device_;
  double begin_s_ = 0;
  std::vector<Event> events_;
  std::vector<Stamp> starts_, ends_;  // of the events
  std::vector<Stamped> spent_;        // changes
};

}  // namespace antichain
