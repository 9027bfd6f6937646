#include "layers/cpu/batch_norm_loops.h"

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace antichain::cpu {
namespace {

namespace baseline {
#include "layers/cpu/batch_norm_loops.inc"
}

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
#include "layers/cpu/batch_norm_loops.inc"
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
namespace avx512 {
#include "layers/cpu/batch_norm_loops.inc"
}
#pragma GCC pop_options
#endif

}  // namespace

const PerInstructionSet<const BatchNormLoops<float>*>& every_batch_norm_loops() {
#ifdef __x86_64__
  static const PerInstructionSet<const BatchNormLoops<float>*> loops = {&baseline::of_float, &avx2::of_float,
                                                                        &avx512::of_float};
#else
  static const PerInstructionSet<const BatchNormLoops<float>*> loops = {
      &baseline::of_float, &baseline::of_float, &baseline::of_float};
#endif
  return loops;
}

}  // namespace antichain::cpu
