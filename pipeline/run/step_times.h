// StepTimes record when a rank did what within a step. In host memory an action takes as long as its call. On
// a device the calls only start work. There the times are the device's: stamps in the stream that the rank
// computes in, read when the step is done.
#pragma once

#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/run/time_sheet.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

class StepTimes {
 public:
  // It is for one step, which begins now. The device and the sheet may be nullptr.
  StepTimes(int rank, bool traced, DeviceStep*, TimeSheet*);

  void start(const Action&);
  void end();
  void spend(Spent);  // within an action, or after the last
  // Ends the step: from here on time is `other`, until a next step begins or the sheet's owner says something
  // else.
  void end_step() { spend(Spent::other); }
  // Call this when the device is done. It brings the sheet up to date, and returns the events of a traced
  // step, in seconds since the step's beginning.
  std::vector<Event> finish();

 private:
  struct Stamped {
    Spent kind;
    Stamp stamp;
  };
  const int rank_;
  const bool traced_;
  DeviceStep* const device_;
  TimeSheet* const sheet_;
  double begin_s_ = 0;
  std::vector<Event> events_;
  std::vector<Stamp> starts_, ends_;  // of the events
  std::vector<Stamped> spent_;        // changes
};

}  // namespace antichain
