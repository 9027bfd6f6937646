#include "layers/cpu/channel_scale_loops.h"

#define ANTICHAIN_LOOPS "layers/cpu/channel_scale_loops.inc"
#define ANTICHAIN_KIND ChannelScaleLoops
#include "layers/cpu/every_set.inc"
