// What a rank's step asks of a device with memory of its own, besides kernels and the copies of
// pipeline/device/device_streams.h. Everything goes into the one stream that the rank computes in: it comes
// about when the work before it is done. The host waits in `wait` only, once a step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/step_numbers.h"
#include "framework/tensor.h"

namespace antichain {

// Tensors that are looked at in one go: their places, in the device's memory.
using LookedAt = std::shared_ptr<void>;

class DeviceStep {
 public:
  virtual ~DeviceStep() = default;

  // Labelled ranges of this thread in the pictures that profilers draw, nested like brackets.
  virtual void begin_range(const std::string& label) = 0;
  virtual void end_range() = 0;

  // When the device comes by, on std::chrono::steady_clock in seconds. Stamps are read after `wait`, all
  // since `tie_clocks`. The device is to have nothing to do then; `exactly` (to some microseconds) waits for
  // it to come by.
  virtual void tie_clocks(bool exactly) = 0;
  virtual size_t stamp() = 0;  // its place in stamps_s()
  virtual std::vector<double> stamps_s() = 0;

  // What is started from `hold` on begins at `let_go`, so that the device then does it without a gap, however
  // slow the host is. It is held for 20 ms at most. Not to be nested, and little enough to be queued: some
  // hundred kernels.
  virtual void hold() = 0;
  virtual void let_go() = 0;

  // Between two tensors of one size, each on the device or page-locked; both are kept by the caller until it
  // is done.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  virtual void clear(const Tensor& on_device) = 0;

  // The samples of an input from what the host sent of them (data/raw_images.h). All on the device; kept by
  // the caller until it is done.
  virtual void make_images(const Tensor& raw, const Tensor& table, const Tensor& images) = 0;

  // found[first + i] becomes 1 where a number of the i-th tensor is infinite or NaN (found: int32, on the
  // device). What is looked at is kept until the look is done.
  virtual LookedAt looked_at(const std::vector<Tensor>&) = 0;
  virtual void look(const LookedAt&, const Tensor& found, int first) = 0;

  // Of the step whose work is started from here on; where they stand in the device's memory.
  virtual void set(const StepNumbers&) = 0;
  virtual const StepNumbers* numbers() const = 0;

  // Work that comes again and again: from its second time on the device may go by what it recorded of the one
  // with that key, without asking it. So it has no other effect than to start things in the stream, the same
  // ones with the same arguments.
  virtual void repeat(int key, const std::function<void()>& work) = 0;
  virtual void forget_recorded() = 0;  // for what comes is not the same any more

  virtual void wait() = 0;  // until all of this is done, and all that was computed before
};

}  // namespace antichain
