#include "layers/cpu/depthwise_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/depthwise_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

template <class T>
const PerInstructionSet<const DepthwiseLoops<T>*>& every_depthwise_loops() {
  static const PerInstructionSet<const DepthwiseLoops<T>*> loops = {&baseline::loops<T>, &avx2::loops<T>,
                                                                    &avx512::loops<T>};
  return loops;
}
template const PerInstructionSet<const DepthwiseLoops<float>*>& every_depthwise_loops();
template const PerInstructionSet<const DepthwiseLoops<Bf16>*>& every_depthwise_loops();

}  // namespace antichain::cpu
