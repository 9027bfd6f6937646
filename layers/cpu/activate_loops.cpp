#include "layers/cpu/activate_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/activate_loops.inc"
#define ANTICHAIN_KIND ActivateLoops
#include "layers/cpu/every_set.inc"
