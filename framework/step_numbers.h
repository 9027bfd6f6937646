// StepNumbers differ from step to step in work that is otherwise the same. Work that a device has recorded
// repeats the arguments it was recorded with. So the numbers are in the device's memory there, where a kernel
// reads them when it runs.
#pragma once

#include <cstdint>

namespace antichain {

struct StepNumbers {
  uint64_t step = 0;
  float rate = 0;  // learning rate
};

}  // namespace antichain
