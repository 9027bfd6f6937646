// Declares the operators of the "cuda" backend, one file each. Images are in NHWC, the order in which tensor
// cores read. The few operators that need rows or NCHW ask for plain, and lower() puts reorders where
// neighbours' layouts differ.
//
// Each operator's file defines one function that returns its entry of the kernel table. `Factors` says how
// matrix products and convolutions round what they multiply; everything else computes in float32, and sums
// over many terms in double.
#pragma once

#include <map>
#include <string>

#include "framework/alternatives.h"
#include "framework/backend.h"

namespace antichain::cuda {

enum class Factors {
  exact,
  tf32,  // to 10 bits of mantissa, for tensor cores; sums in float32
};

KernelEntry activate_entry();
KernelEntry adaptive_average_pool_entry();
KernelEntry add_entry();
KernelEntry attention_entry();
KernelEntry average_pool_entry();
KernelEntry batch_norm_entry();
KernelEntry class_token_entry();
KernelEntry concat_entry();
KernelEntry constant_entry();
KernelEntry conv2d_entry(Factors);
KernelEntry conv_transpose2d_entry(Factors);
KernelEntry dropout_entry();
KernelEntry elementwise_entry();
KernelEntry embedding_entry();
KernelEntry formula_loss_entry();
KernelEntry gather_entry();
KernelEntry global_average_pool_entry();
KernelEntry group_norm_entry();
KernelEntry interpolate_entry();
KernelEntry layer_norm_entry();
KernelEntry layer_scale_entry();
KernelEntry linear_entry(Factors);
KernelEntry matmul_entry();
KernelEntry max_pool_entry();
KernelEntry mean_entry();
KernelEntry multiply_entry();
KernelEntry permute_entry();
KernelEntry relu_entry();
KernelEntry reorder_entry();
KernelEntry reshape_entry();
KernelEntry rotary_entry();
KernelEntry slice_entry();
KernelEntry softmax_entry();
KernelEntry softmax_cross_entropy_entry();
KernelEntry spectral_norm_entry();
KernelEntry stochastic_depth_entry();

std::map<std::string, KernelEntry, std::less<>> operators(Factors);
// Lists what else could carry out the passes of convolutions.
ListAlternatives conv2d_alternatives(Factors);

// Returns the layout that every operator here wants for images; rows have only one.
inline Layout layout_of(const Shape& shape) { return shape.rank() == 4 ? Layout::nhwc : Layout::plain; }

}  // namespace antichain::cuda
