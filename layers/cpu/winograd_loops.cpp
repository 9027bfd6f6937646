#include "layers/cpu/winograd_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ANTICHAIN_LOOPS "layers/cpu/winograd_loops.inc"
#define ANTICHAIN_KIND WinogradLoops
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
