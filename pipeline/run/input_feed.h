// Samples on their way to a device: while micro-batch m is computed, m + 1 is drawn into page-locked memory
// and copied from there in a stream beside computing.
//
// On the host two buffers per input take turns; one is drawn into when its last copy is done, so the host is
// less than two micro-batches ahead of the device. On the device the ring of an input has one buffer more
// than there are micro-batches in flight: what is in the next one was used up by work that had been started
// when the micro-batch before was loaded, and the copy begins after that work. The first micro-batch of the
// next step is drawn during this one, where the source knows it.
//
// Raw images (data/raw_images.h) have two buffers of their own on the device, free by the same rule, and
// loading makes the input's tensor of them, in the order of computing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/run/step.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class Backend;

class InputFeed {
 public:
  // The inputs that the memory has rings for. `idle` is called again and again while the host waits for a
  // copy.
  InputFeed(const Graph&, const StageMemory&, const Backend&, DeviceStep&, CopyStream&, const Share&,
            std::function<void()> idle);

  bool empty() const { return inputs_.empty(); }  // the stage uses no samples
  void begin_step(const BatchSource&);            // allocates in the first
  // What is computed from now on finds the micro-batch's samples. In the order of the share, from its first
  // in every step.
  void load(int microbatch, BatchSource&);
  // Starts on the micro-batch after the one loaded last, if there is one: to be called when that one's work
  // was started.
  void load_ahead(BatchSource&);
  // From here on nothing that is started uses samples; before the update, where there is one.
  void end_step();
  void load_next(BatchSource&);

 private:
  struct Buffer {
    Tensor host;
    Tensor raw;     // on the device, of raw images
    Moment copied;  // nullptr where nothing was copied from it yet
  };
  struct Input {
    std::string name;
    TensorSpec spec;
    const Ring* ring = nullptr;
    Buffer buffers[2];         // of every other micro-batch
    Tensor table_here, table;  // of raw images: page-locked, on the device
  };
  void prepare(Input&, const RawImages*);
  void start(int turn, const Moment& after,
             const std::function<void(const std::string& input, int microbatch, const Tensor& host)>& draw);

  const Backend& backend_;
  DeviceStep& step_;
  CopyStream& copies_;
  const Share share_;
  const std::function<void()> idle_;
  std::vector<Input> inputs_;
  int loaded_ = 0, started_ = 0;  // micro-batches of the share, in this step
  Moment free_;                   // the ring's next buffer
  bool ended_ = false;
  bool next_ = false;  // the first of a next step is there
};

}  // namespace antichain
