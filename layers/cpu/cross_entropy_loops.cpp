#include "layers/cpu/cross_entropy_loops.h"

#include "layers/activate.h"
#include "layers/cpu/read_ahead.h"

#define ANTICHAIN_LOOPS "layers/cpu/cross_entropy_loops.inc"
#define ANTICHAIN_KIND CrossEntropyLoops
#include "layers/cpu/every_set.inc"
