#include "layers/cpu/softmax_loops.h"

#include "layers/activate.h"

#define ANTICHAIN_LOOPS "layers/cpu/softmax_loops.inc"
#define ANTICHAIN_KIND SoftmaxLoops
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
