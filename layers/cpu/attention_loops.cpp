#include "layers/cpu/attention_loops.h"

#include "layers/activate.h"

#define ANTICHAIN_LOOPS "layers/cpu/attention_loops.inc"
#define ANTICHAIN_KIND AttentionLoops
#include "layers/cpu/every_set.inc"
