#include "layers/cpu/elementwise_steps.h"

#define ANTICHAIN_LOOPS "layers/cpu/elementwise_steps.inc"
#define ANTICHAIN_KIND ElementwiseSteps
#define ANTICHAIN_FLOAT_ONLY
#include "layers/cpu/every_set.inc"
