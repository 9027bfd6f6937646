#include "layers/cpu/elementwise_loops.h"

namespace antichain::cpu {
namespace {

namespace baseline {
#include "layers/cpu/elementwise_loops.inc"
}

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
#include "layers/cpu/elementwise_loops.inc"
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
namespace avx512 {
#include "layers/cpu/elementwise_loops.inc"
}
#pragma GCC pop_options
#else
namespace avx2 = baseline;
namespace avx512 = baseline;
#endif

}  // namespace

const ElementwiseLoops& elementwise_loops() {
  static const ElementwiseLoops& loops =
      *best<const ElementwiseLoops*>({&baseline::loops, &avx2::loops, &avx512::loops});
  return loops;
}

}  // namespace antichain::cpu
