// A DeviceStep is what a rank's step needs from a device with its own memory, besides kernels and the copies
// of pipeline/device/device_streams.h. Every call enqueues work into the one stream in which the rank
// computes, and this work runs when the work before it is done. The host waits only in `wait`, once a step.
// Where `steps_at_once` allows it, the host starts a step before it waits for the one in front.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/step_numbers.h"
#include "framework/tensor.h"
#include "pipeline/device/device_streams.h"

namespace antichain {

// A handle to tensors that are checked together: their addresses, in the device's memory.
using LookedAt = std::shared_ptr<void>;

// A handle to gradients whose norm is clipped: their addresses and sums, in the device's memory.
using Gradients = std::shared_ptr<void>;

// A Stamp keeps the time at which the device reached a point in its work.
using Stamp = std::shared_ptr<void>;

class DeviceStep {
 public:
  virtual ~DeviceStep() = default;

  // Marks labelled ranges of this thread for profilers. Ranges nest like brackets.
  virtual void begin_range(const std::string& label) = 0;
  virtual void end_range() = 0;

  // `at_s` says when the device reached a stamp, on std::chrono::steady_clock in seconds. It is called when
  // the host has waited for something behind the stamp. `tie_clocks` comes before the first stamp, and the
  // last call before a stamp counts. With `exactly` it waits for the device, which ties the clocks to within
  // some microseconds. Without, it supposes that the device answers at once.
  virtual void tie_clocks(bool exactly) = 0;
  virtual Stamp stamp() = 0;
  virtual double at_s(const Stamp&) = 0;

  // Work enqueued after `hold` starts at `let_go`, so that the device then runs it without gaps, however slow
  // the host is. The hold lasts at most 20 ms. Holds do not nest, and the work must fit the device's queue
  // (some hundred kernels).
  virtual void hold() = 0;
  virtual void let_go() = 0;

  // Copies between two tensors of one size, each on the device or page-locked. The caller keeps both until
  // the copy is done.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  virtual void clear(const Tensor& on_device) = 0;

  // Makes the samples of an input from what the host sent of them (data/raw_images.h). All tensors are on the
  // device, and the caller keeps them until this is done.
  virtual void make_images(const Tensor& raw, const Tensor& table, const Tensor& images) = 0;

  // look() sets found[first + i] to 1 where a number of the i-th tensor is infinite or NaN (found: int32, on
  // the device). The caller keeps the tensors until the check is done.
  virtual LookedAt looked_at(const std::vector<Tensor>&) = 0;
  virtual void look(const LookedAt&, const Tensor& found, int first) = 0;

  // sum_squares() sums the squares of each of the gradients (float32) in double precision; copy_sums() copies
  // these sums to page-locked memory. clip() then multiplies all by the factor that clips their norm, and
  // scale() by another one. The caller keeps the gradients until this is done.
  virtual Gradients gradients(const std::vector<Tensor>&) = 0;
  virtual void sum_squares(const Gradients&) = 0;
  virtual void copy_sums(const Gradients&, const Tensor& host) = 0;
  virtual void clip(const Gradients&, double most) = 0;
  virtual void scale(const Gradients&, float factor) = 0;

  // Sets the numbers for the step whose work is enqueued from here on, where the device's kernels read them.
  virtual void set(const StepNumbers&) = 0;
  virtual const StepNumbers* numbers() const = 0;

  // Runs work that comes repeatedly under this key. From the second time on the device may replay its
  // recording without calling `work`. So `work` must only enqueue into the stream, always the same operations
  // with the same arguments.
  virtual void repeat(int key, const std::function<void()>& work) = 0;
  virtual void forget_recorded() = 0;  // drops the recordings, because later work differs

  virtual Moment computed() = 0;  // when all computing that this rank has started so far is done
  // Runs work that enqueues into a second stream, after that moment. Meanwhile the context and everything
  // made for it (transports, kernels) use that stream. After `rejoin` computing waits for it.
  virtual void beside(const Moment& after, const std::function<void()>& work) = 0;
  virtual void rejoin() = 0;

  virtual void wait() = 0;               // until all of this, and all computing before it, is done
  virtual void wait(const Moment&) = 0;  // until this moment of computing has come

  // Returns how many steps may be under way, the oldest of which the host waits for.
  virtual int steps_at_once() const { return 1; }
};

}  // namespace antichain
