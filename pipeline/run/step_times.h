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
  // It is for one step, from now on. Neither device nor sheet need be there.
  StepTimes(int rank, bool traced, DeviceStep*, TimeSheet*);

  void start(const Action&);
  void end();
  void spend(Spent);  // within an action, or after the last
  // To be called when the device is done. The sheet is up to date and runs on as `other`. Returns events in
  // seconds since the step's begin, where traced.
  std::vector<Event> finish();

 private:
  struct Stamped {
    Spent kind;
    size_t stamp;
  };
  const int rank_;
  const bool traced_;
  DeviceStep* const device_;
  TimeSheet* const sheet_;
  double begin_s_ = 0;
  std::vector<Event> events_;
  std::vector<size_t> starts_, ends_;  // stamps of the events
  std::vector<Stamped> spent_;         // changes
};

}  // namespace antichain
