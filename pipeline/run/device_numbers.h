// DeviceNumbers watches the numbers of a stage on a device without waiting for it. Losses are copied to
// page-locked memory, and checks leave marks (flags) on the device, all in the order of computing. The host
// reads both once, at the step's end.
//
// By then the buffers are in use again, so a micro-batch can't be run once more to find where a bad number
// came from. The first checked tensor that holds one is reported.
#pragma once

#include <map>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/run/number_watch.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class DeviceNumbers final : public NumberWatch {
 public:
  // Everything referred to must outlive it.
  DeviceNumbers(DeviceStep&, CopyStream&, RankModel&, WatchedRank);

  void begin_step() override;
  // This only starts work on the device, so that it can be recorded; the same holds for the checks.
  void add_loss(NodeId, int microbatch, const Tensor& y) override;
  void forward_started(int stage, int microbatch) override;
  // Waits for the device.
  void finish(StepResult&) override;

 private:
  struct Look {  // one check of several tensors at one time: what a bad number there means
    LookedAt at;
    int first = 0;  // its first mark
    std::vector<NonFinite> places;
    bool bad = false;  // the step must not count; else it is only a trace
  };
  struct Noted {
    NodeId id = 0;
    int microbatch = 0;
  };
  class Gathering;
  void look_at_forward(int stage, int microbatch) override;
  void look_at_backward(int stage, int microbatch, Verb half) override;
  void look_at_gradients() override;
  bool is_asked_before_update() const override { return decides_; }
  bool ask() override;
  // Waits for the device, once a step. Losses are added up in the order in which they were computed.
  void read();
  void read_losses();
  void read_marks();
  void prepare_looks();
  Look at_statistics(const WatchedStage&, int microbatch, int& marks);
  Look at_outputs(const WatchedStage&, int microbatch, int& marks);
  Look at_sent_gradients(const WatchedStage&, int microbatch, int& marks);
  Look at_weight_gradients(const std::vector<NodeId>&, NonFinite place, int largest_rank, bool bad,
                           int& marks);
  void take(const Look&);

  DeviceStep& device_;
  CopyStream& copies_;
  RankModel& model_;
  const WatchedRank place_;
  std::map<NodeId, std::vector<Tensor>> losses_;  // page-locked, by micro-batch
  std::vector<Noted> noted_;
  struct Looks {  // at one stage, by micro-batch
    std::vector<Look> statistics, outputs, sent, vectors;
  };
  std::map<int, Looks> looks_;  // by stage; empty until they are wanted
  Look gradients_;
  Tensor marks_, marks_here_;  // on the device, page-locked
  double loss_ = 0, correct_ = 0;
  NumberReport report_;
  bool read_ = false;
};

}  // namespace antichain
