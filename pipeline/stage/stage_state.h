// This is all that a stage has to remember between two steps: parameters and buffers by name, and the
// optimiser's slots as "SLOT/NAME". It is there as files have it (plain layout), and as a copy in host memory
// that is taken in a moment and put into files later.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/checkpoint.h"
#include "pipeline/stage/stage.h"

namespace antichain {

// What a checkpoint of this network has, over all stages.
std::vector<CheckpointTensor> checkpoint_tensors(const Graph&, const Optimiser&);

// A cut through the stage's state: tensors that stay as they are while training goes on.
class StateCopy {
 public:
  // Takes the stage's state: copies, into memory that later copies use again; or, with `alias`, its own
  // tensors, for as long as the stage rests.
  void take(Stage&, bool alias);
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

// Bytes of a stage's state: what one copy takes, and one file; and of its largest tensor.
struct StateBytes {
  int64_t all = 0, largest = 0;
};
StateBytes state_bytes(const Stage&);

// Sets the stage's state from the files of a checkpoint: those that have any of it are read, and checked
// before anything is used. Damaged, or Error when a tensor is missing or has another shape.
void restore(Stage&, const std::string& checkpoint, const Manifest&);

}  // namespace antichain
