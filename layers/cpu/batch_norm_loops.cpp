#include "layers/cpu/batch_norm_loops.h"

#include "layers/activate.h"

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/batch_norm_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

template <class T>
const PerInstructionSet<const BatchNormLoops<T>*>& every_batch_norm_loops() {
  static const PerInstructionSet<const BatchNormLoops<T>*> loops = {&baseline::loops<T>, &avx2::loops<T>,
                                                                    &avx512::loops<T>};
  return loops;
}
template const PerInstructionSet<const BatchNormLoops<float>*>& every_batch_norm_loops();
template const PerInstructionSet<const BatchNormLoops<Bf16>*>& every_batch_norm_loops();

}  // namespace antichain::cpu
