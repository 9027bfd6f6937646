// MemoryShares say what the memory of a rank is taken by during a step. There is one model of it: the weights
// with what belongs to them, and the buffers of the compiled program. Whoever predicts memory reads it here,
// and RankMemory (pipeline/stage/stage_memory.h) allocates what it says.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/program/program.h"

namespace antichain {

struct MemoryShares {
  int64_t weights = 0;    // trained and frozen, and what the engine prepares of them
  int64_t versions = 0;   // older ones of them, where training is asynchronous
  int64_t gradients = 0;  // of weights
  int64_t optimiser = 0;  // what it keeps beside the weights
  int64_t kept = 0;       // from one action to another: outputs, the stash, inputs, statistics
  int64_t working = 0;    // what is born and dies within an action: the arena
  int64_t messages = 0;   // what is received, and gradients that are sent
  int64_t scratch = 0;    // that the largest of the kernels works in; the others work in the same

  int64_t held() const { return weights + versions + gradients + optimiser; }
  int64_t activations() const { return kept + working + messages + scratch; }
  int64_t bytes() const { return held() + activations(); }
};

// Returns what a rank's program keeps, and its messages; `working` is left to whoever lays the arena out.
MemoryShares ring_shares(const RankProgram&);

// Returns the shares per rank, as far as a profile tells: its arena is the most bytes of passing tensors that
// live at once. Evaluation keeps no stash, no gradients and nothing of the optimiser. Statistics of single
// micro-batches and the loader's samples are not included.
std::vector<MemoryShares> memory_shares(const Schedule&, const Plan&, const Profile&);
std::vector<int64_t> peak_memory_bytes(const Schedule&, const Plan&, const Profile&);  // their sums

}  // namespace antichain
