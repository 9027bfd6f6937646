#include "layers/cpu/product_loops.h"

// Vectors wider than registers are fine here: no function that takes them is called from elsewhere.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace antichain::cpu {
namespace {

#define ANTICHAIN_LOOPS "layers/cpu/product_loops.inc"
#include "layers/cpu/per_instruction_set.inc"

}  // namespace

const PerInstructionSet<AddProduct*>& every_add_product() {
  static const PerInstructionSet<AddProduct*> loops = {&baseline::add_product, &avx2::add_product,
                                                       &avx512::add_product};
  return loops;
}

}  // namespace antichain::cpu
