#include "layers/cpu/batch_norm_loops.h"

#include "layers/activate.h"

#define ANTICHAIN_LOOPS "layers/cpu/batch_norm_loops.inc"
#define ANTICHAIN_KIND BatchNormLoops
#include "layers/cpu/every_set.inc"
