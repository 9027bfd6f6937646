#include "layers/cpu/activate_loops.h"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/activate_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

template <class T>
const PerInstructionSet<const ActivateLoops<T>*>& every_activate_loops() {
  static const PerInstructionSet<const ActivateLoops<T>*> loops = {&baseline::loops<T>, &avx2::loops<T>,
                                                                   &avx512::loops<T>};
  return loops;
}
template const PerInstructionSet<const ActivateLoops<float>*>& every_activate_loops();
template const PerInstructionSet<const ActivateLoops<Bf16>*>& every_activate_loops();

}  // namespace antichain::cpu
