#include "framework/cuda/step_numbers.h"

#include "framework/cuda/launch.h"

namespace antichain::cuda {

void set_numbers(Stream stream, const StepNumbers& numbers, StepNumbers* to) {
  for_each(stream, 1, [=] ANTICHAIN_DEVICE(Index) { *to = numbers; });
}

}  // namespace antichain::cuda
