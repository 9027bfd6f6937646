#include "layers/cpu/softmax_loops.h"

#include "layers/activate.h"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/softmax_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

const PerInstructionSet<const SoftmaxLoops*>& every_softmax_loops() {
  static const PerInstructionSet<const SoftmaxLoops*> loops = {&baseline::loops, &avx2::loops,
                                                               &avx512::loops};
  return loops;
}

}  // namespace antichain::cpu
