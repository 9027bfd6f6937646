// An optimiser whose update needs scratch memory besides the slots says how much, so that it is there before
// the first step and in every estimate of memory.
#pragma once

#include <cstdint>

#include "framework/optimiser.h"

namespace antichain {

class NeedsScratch {
 public:
  virtual ~NeedsScratch() = default;
  // `lies` says how the parameter lies in memory.
  virtual int64_t scratch_bytes(const ParamSpec&, const TensorSpec& lies) const = 0;
};

// Returns the most that the update of one of a lowered node's parameters needs.
int64_t update_scratch_bytes(const Optimiser&, const Node&);

}  // namespace antichain
