// The feed of a device draws micro-batch m + 1 into page-locked memory while m is computed, and copies it
// from there in a stream beside computing.
//
// On the host two buffers per input take turns; one is drawn into when its last copy is done, so the host is
// less than two micro-batches ahead of the device. On the device the ring of an input has one buffer more
// than there are micro-batches in flight. The last use of the next buffer was started before the present
// micro-batch was loaded, and the copy into it begins after that work. The first micro-batch of the next step
// is drawn during this one, where the source knows it.
//
// Raw images (data/raw_images.h) have two buffers of their own on the device, free by the same rule, and
// loading makes the input's tensor of them, in the order of computing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class Backend;

class DeviceFeed final : public InputFeed {
 public:
  // It feeds the inputs that the memory has rings for. `idle` is called again and again while the host waits
  // for a copy. Everything referred to must outlive it.
  DeviceFeed(const Graph&, const StageMemory&, const Backend&, DeviceStep&, CopyStream&, const Seat&,
             std::function<void()> idle);

  void begin_step(const BatchSource&) override;  // allocates in the first step
  void load(int microbatch, BatchSource&) override;
  bool loads_ahead() const override { return !inputs_.empty(); }
  void load_ahead(BatchSource&) override;
  void end_use() override;
  void load_next(BatchSource&) override;

 private:
  struct Buffer {
    Tensor host;
    Tensor raw;     // on the device, of raw images
    Moment copied;  // nullptr where nothing was copied from it yet
  };
  struct Input {
    std::string name;
    TensorSpec spec;
    BufferId buffer = no_buffer;  // of the step's memory
    Buffer buffers[2];            // of every other micro-batch
    Tensor table_here, table;     // of raw images: page-locked, on the device
  };
  void prepare(Input&, const RawImages*);
  void start(int turn, const Moment& after,
             const std::function<void(const std::string& input, int microbatch, const Tensor& host)>& draw);

  const StageMemory& memory_;
  const Backend& backend_;
  DeviceStep& device_;
  CopyStream& copies_;
  const Seat seat_;
  const std::function<void()> idle_;
  std::vector<Input> inputs_;
  int loaded_ = 0, started_ = 0;  // micro-batches of the seat, in this step
  Moment free_;                   // the ring's next buffer
  bool ended_ = false;
  bool next_ = false;  // the first of a next step is there
};

}  // namespace antichain
