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
#else
namespace avx2 = baseline;
namespace avx512 = baseline;
#endif

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
