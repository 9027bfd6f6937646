#include "layers/cpu/philox_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ANTICHAIN_LOOPS "layers/cpu/philox_loops.inc"
#define ANTICHAIN_KIND PhiloxLoops
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
