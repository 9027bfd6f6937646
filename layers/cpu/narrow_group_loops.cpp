#include "layers/cpu/narrow_group_loops.h"

#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ANTICHAIN_LOOPS "layers/cpu/narrow_group_loops.inc"
#define ANTICHAIN_KIND narrow::Loops
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
