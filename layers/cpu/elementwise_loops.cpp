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

template <class T>
const ElementwiseLoops<T>& elementwise_loops() {
  static const ElementwiseLoops<T>& loops =
      *best<const ElementwiseLoops<T>*>({&baseline::loops<T>, &avx2::loops<T>, &avx512::loops<T>});
  return loops;
}
template const ElementwiseLoops<float>& elementwise_loops();
template const ElementwiseLoops<Bf16>& elementwise_loops();

}  // namespace antichain::cpu
