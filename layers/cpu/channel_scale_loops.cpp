#include "layers/cpu/channel_scale_loops.h"

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/channel_scale_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

template <class T>
const PerInstructionSet<const ChannelScaleLoops<T>*>& every_channel_scale_loops() {
  static const PerInstructionSet<const ChannelScaleLoops<T>*> loops = {&baseline::loops<T>, &avx2::loops<T>,
                                                                       &avx512::loops<T>};
  return loops;
}
template const PerInstructionSet<const ChannelScaleLoops<float>*>& every_channel_scale_loops();
template const PerInstructionSet<const ChannelScaleLoops<Bf16>*>& every_channel_scale_loops();

}  // namespace antichain::cpu
