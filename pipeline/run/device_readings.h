// What the host reads of a step on a device: the losses, and whether numbers are finite. Nothing of it is
// waited for when it is made: losses are copied to page-locked memory and the looks leave marks on the
// device, all in the order of computing, and one reading at the end finds them.
//
// What is looked at is what runner_numbers.cpp looks at on the host. By then the buffers are used again, so a
// micro-batch can't be run once more to find where a bad number came from: an offence is the first tensor
// looked at that holds one.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/run/step.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/stage/stage.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class DeviceReadings {
 public:
  struct Place {  // of a rank's step
    int rank = 0, microbatches = 1;
    std::set<NodeId> sent;  // nodes whose outputs leave the stage
  };
  // Everything referred to must outlive it.
  DeviceReadings(DeviceStep&, CopyStream&, Stage&, const StageMemory&, Place);

  void begin_step(bool judged);  // judged: the looks are wanted

  // Work on the device, and nothing else, so that it can be recorded.
  void copy_loss(NodeId, int microbatch, const Tensor& y);
  void look_at_forward(int microbatch);
  void look_at_backward(int microbatch, Verb half);
  void look_at_gradients();

  void forward_started(int microbatch);  // its losses are on their way

  // Waits for the device, once a step. Losses are added up in the order in which they were computed.
  void read(StepResult&, NumberReport&);
  bool was_read() const { return read_; }

 private:
  struct Look {  // at tensors of one moment: what a bad number there says
    LookedAt at;
    int first = 0;  // mark
    std::vector<Offence> offences;
    bool bad = false;  // of the step, not only a trace
  };
  struct Noted {
    NodeId id = 0;
    int microbatch = 0;
  };
  class Gathering;
  void prepare_looks();
  Look at_statistics(int microbatch, int& marks);
  Look at_outputs(int microbatch, int& marks);
  Look at_sent_gradients(int microbatch, int& marks);
  Look at_weight_gradients(Offence place, int largest_rank, bool bad, int& marks);
  void take(const Look&);

  DeviceStep& step_;
  CopyStream& copies_;
  Stage& stage_;
  const StageMemory& memory_;
  const Place place_;
  std::map<NodeId, std::vector<Tensor>> losses_;  // page-locked, by micro-batch
  std::vector<Noted> noted_;
  std::vector<Look> statistics_, outputs_, sent_, vectors_;  // by micro-batch; empty until they are wanted
  Look gradients_;
  Tensor marks_, marks_here_;  // on the device, page-locked
  bool judged_ = false, read_ = false;
};

}  // namespace antichain
