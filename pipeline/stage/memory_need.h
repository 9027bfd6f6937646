// A MemoryNeed is what a rank will allocate for training, added up before it does so. The same code lays the
// tensors out, but allocates nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "data/data_set.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

struct MemoryNeed {
  MemoryShares step;       // of a training step; its weights include buffers
  int64_t evaluation = 0;  // of an evaluation's, which stays beside it
  int64_t images = 0;      // micro-batches decoded ahead, and the order of an epoch's samples
  int64_t code = 0;        // small objects of the runner, and what the engine allocates in a call
  int64_t copy = 0;        // of what was learned, for hash and file: when the steps' tensors are free again
  // Where ranks compute on devices with memory of their own, the first is what lies there, and the second
  // what lies on the host.
  int64_t on_device() const { return step.bytes() + evaluation; }
  int64_t beside_device() const { return std::max(images, copy); }
  int64_t total() const {
    const int64_t tensors = step.activations() - step.scratch;  // the scratch stays
    return step.held() + code + step.scratch + std::max(tensors + evaluation + images, copy);
  }
};

// Returns the need of this rank of the plan for steps alone, on samples that are there.
MemoryNeed step_need(const Graph& lowered, const Optimiser&, const Profile& profile, const Plan&,
                     const Schedule&, int rank, Mode = Mode::train);
// Returns the need for all that `antichain train` does besides. `samples` are those of the training set, and
// `image_bytes` those of one decoded image. With `keeps_weights`, rank 0 gathers the weights at the end and
// writes a file of them.
MemoryNeed memory_need(const Graph& lowered, const Optimiser&, const Profile& profile, const Plan&,
                       const Schedule& training, int rank, int64_t samples, int64_t image_bytes,
                       bool keeps_weights);

}  // namespace antichain
