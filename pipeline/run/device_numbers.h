// DeviceNumbers watches the numbers of a stage on a device without waiting for it. Losses are gathered on the
// device, and checks leave marks (flags) there, all in the order of computing. At the step's end both are
// copied to page-locked memory, where the host reads them when it finishes the step. A next step may be under
// way by then: two steps take turns with that memory.
//
// By then the buffers are in use again, so a micro-batch can't be run once more to find where a bad number
// came from. The first checked tensor that holds one is reported.
#pragma once

#include <array>
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

  void begin_steps(std::span<const StepInput>) override;  // one
  // This only starts work on the device, so that it can be recorded; the same holds for the checks.
  void add_loss(NodeId, int microbatch, const Tensor& y) override;
  void forward_started(int stage, int microbatch) override;
  void end_step() override;
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
  // An Outcome is what came out of a step.
  struct Outcome {
    Tensor losses, marks;      // page-locked
    std::vector<Noted> noted;  // losses, in the order in which they are computed
    StepInput step;
    Moment ended;  // all of the step
    bool is_read = false;
    double loss = 0, correct = 0;
    NumberReport report;
  };
  class Gathering;
  void look_at_forward(int stage, int microbatch) override;
  void look_at_backward(int stage, int microbatch, Verb half) override;
  void look_at_gradients() override;
  bool is_asked_before_update() const override { return decides_; }
  bool ask() override;
  Outcome& begun() { return outcomes_[size_t((steps_begun_ - 1) % 2)]; }  // of the step begun last
  void copy_out(Outcome&);
  void read(Outcome&);  // when the copies are there
  void read_losses(Outcome&) const;
  void read_marks(Outcome&) const;
  void lay_out_losses();
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
  Tensor losses_;                                   // all of a step, on the device
  std::map<NodeId, std::vector<int64_t>> loss_at_;  // by micro-batch: where its bytes are in there
  // These are the checks at one stage, by micro-batch.
  struct Looks {
    std::vector<Look> statistics, outputs, sent, vectors;
  };
  std::map<int, Looks> looks_;  // by stage; empty until they are wanted
  Look gradients_;
  Tensor marks_;  // on the device
  std::array<Outcome, 2> outcomes_;
  int64_t steps_begun_ = 0, steps_finished_ = 0;
};

}  // namespace antichain
