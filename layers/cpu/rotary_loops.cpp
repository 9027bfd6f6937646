#include "layers/cpu/rotary_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/rotary_loops.inc"
#define ANTICHAIN_KIND RotaryLoops
#include "layers/cpu/every_set.inc"
