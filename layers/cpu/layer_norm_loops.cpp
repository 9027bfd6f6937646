#include "layers/cpu/layer_norm_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/layer_norm_loops.inc"
#define ANTICHAIN_KIND LayerNormLoops
#include "layers/cpu/every_set.inc"
