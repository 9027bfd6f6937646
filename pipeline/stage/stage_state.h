// This is all that a stage has to remember between two steps: parameters and buffers by name, the optimiser's
// slots as "SLOT/NAME", and, where training is asynchronous, the weights of k updates ago as "behind-K/NAME",
// or what was predicted of them as "predicted-K/NAME", with K = 0 for the newest. The state exists in the
// form that files have (plain layout), and as a copy in host memory, which is taken quickly and written to
// files later.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/checkpoint.h"
#include "pipeline/stage/rank_model.h"

namespace antichain {

// Returns what a checkpoint of this network has, over all stages.
std::vector<CheckpointTensor> checkpoint_tensors(const Graph&, const Optimiser&);

// Where replicas share out the optimiser's state, all of them call this for each slot in the same order. It
// sends what this one has of the slot, or, on the first replica, fills in the rest of `whole`.
using GatherSlot = std::function<void(const ParamUse&, const Tensor& own, const Tensor& whole)>;
// Calls it on a replica that is not the first.
void give_slots(const RankModel&, const GatherSlot&);

// A StateCopy is a cut through the stage's state: tensors that stay as they are while training goes on.
class StateCopy {
 public:
  // Takes the stage's state. It copies into memory that later copies use again, or, with `alias`, has the
  // stage's own tensors for as long as the stage rests. Slots that others have parts of are always copied.
  void take(RankModel&, bool alias, const GatherSlot& = {});
  std::vector<CheckpointTensor> tensors() const;                                             // in it
  void write_hdf5(const Context&, const std::function<void(std::string_view)>& sink) const;  // in pieces

 private:
  struct Item {
    CheckpointTensor tensor;
    std::string name, group;
    TensorSpec plain;
    Tensor value, copy;  // what is written; the memory for copies
  };
  std::vector<Item> items_;
};

// StateBytes are the bytes of a stage's state, which are what one copy and one file take, and of its largest
// tensor.
struct StateBytes {
  int64_t all = 0, largest = 0;
};
StateBytes state_bytes(const RankModel&);

// Sets the stage's state from the files of a checkpoint. Those that have any of it are read, and checked
// before anything is used. Throws Damaged, or Error when a tensor is missing or has another shape.
void restore(RankModel&, const std::string& checkpoint, const Manifest&);

}  // namespace antichain
