// A feed brings the samples of each micro-batch to where a stage computes: host_feed.h fills host memory when
// the schedule says so, device_feed.h copies to a device ahead of the schedule.
#pragma once

#include "pipeline/run/step.h"

namespace antichain {

class InputFeed {
 public:
  virtual ~InputFeed() = default;

  virtual void begin_step(const BatchSource&) {}
  // Gives the micro-batch's samples to everything that is computed from now on. Micro-batches are loaded in
  // the order of the rank's seat, from its first in every step.
  virtual void load(int microbatch, BatchSource&) = 0;

  // Returns whether `load_ahead` has anything to do in some step.
  virtual bool loads_ahead() const { return false; }
  // Starts on the micro-batch after the one loaded last, if there is one. It is called when the work of the
  // one loaded last was started.
  virtual void load_ahead(BatchSource&) {}
  // Says that no work started from here on uses samples. It is called before the update, where there is one.
  virtual void end_use() {}
  // Starts on the first micro-batch of the next step, where the source knows it. It is called at the end of
  // the step.
  virtual void load_next(BatchSource&) {}
};

}  // namespace antichain
