#include "layers/cpu/product_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/product_loops.inc"
#define ANTICHAIN_KIND ProductLoops
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
