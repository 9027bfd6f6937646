// Every operator in one include, for files that build networks.
#pragma once

#include "layers/adaptive_pool.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/group_norm.h"
#include "layers/input.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"
#include "layers/softmax_cross_entropy.h"
