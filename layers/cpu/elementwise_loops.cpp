#include "layers/cpu/elementwise_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/elementwise_loops.inc"
#define ANTICHAIN_KIND ElementwiseLoops
#include "layers/cpu/every_set.inc"
