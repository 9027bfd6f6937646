#include "layers/cpu/depthwise_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ANTICHAIN_LOOPS "layers/cpu/depthwise_loops.inc"
#define ANTICHAIN_KIND DepthwiseLoops
#include "layers/cpu/every_set.inc"
