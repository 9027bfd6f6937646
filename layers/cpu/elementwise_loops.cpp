#include "layers/cpu/elementwise_loops.h"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/elementwise_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

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
