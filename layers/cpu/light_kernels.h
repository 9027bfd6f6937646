// Lists the operators whose kernels are our own loops: they move bytes rather than multiply, and work on any
// activation layout. The backend enters each into its kernel table under the operator's type.
#pragma once

#include "framework/backend.h"

namespace antichain::cpu {

KernelEntry activate_entry();
KernelEntry attention_entry();
KernelEntry batch_norm_entry();
KernelEntry group_norm_entry();
KernelEntry interpolate_entry();
KernelEntry layer_norm_entry();
KernelEntry relu_entry();
KernelEntry matmul_entry();
KernelEntry max_pool_entry();
KernelEntry average_pool_entry();
KernelEntry adaptive_average_pool_entry();
KernelEntry global_average_pool_entry();
KernelEntry add_entry();
KernelEntry class_token_entry();
KernelEntry concat_entry();
KernelEntry constant_entry();
KernelEntry dropout_entry();
KernelEntry elementwise_entry();
KernelEntry embedding_entry();
KernelEntry formula_loss_entry();
KernelEntry gather_entry();
KernelEntry layer_scale_entry();
KernelEntry mean_entry();
KernelEntry multiply_entry();
KernelEntry permute_entry();
KernelEntry reshape_entry();
KernelEntry rotary_entry();
KernelEntry slice_entry();
KernelEntry softmax_entry();
KernelEntry softmax_cross_entropy_entry();
KernelEntry spectral_norm_entry();
KernelEntry stochastic_depth_entry();

}  // namespace antichain::cpu
