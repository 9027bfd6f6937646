#include "layers/cuda/operators.h"

namespace antichain::cuda {

std::map<std::string, KernelEntry, std::less<>> operators(Factors factors) {
  return {{"activate", activate_entry()},
          {"adaptive_average_pool", adaptive_average_pool_entry()},
          {"add", add_entry()},
          {"attention", attention_entry()},
          {"average_pool", average_pool_entry()},
          {"batch_norm", batch_norm_entry()},
          {"class_token", class_token_entry()},
          {"concat", concat_entry()},
          {"constant", constant_entry()},
          {"conv2d", conv2d_entry(factors)},
          {"conv_transpose2d", conv_transpose2d_entry(factors)},
          {"dropout", dropout_entry()},
          {"elementwise", elementwise_entry()},
          {"embedding", embedding_entry()},
          {"flatten", reshape_entry()},
          {"formula_loss", formula_loss_entry()},
          {"gather", gather_entry()},
          {"global_average_pool", global_average_pool_entry()},
          {"group_norm", group_norm_entry()},
          {"interpolate", interpolate_entry()},
          {"layer_norm", layer_norm_entry()},
          {"layer_scale", layer_scale_entry()},
          {"linear", linear_entry(factors)},
          {"matmul", matmul_entry()},
          {"max_pool", max_pool_entry()},
          {"mean", mean_entry()},
          {"multiply", multiply_entry()},
          {"permute", permute_entry()},
          {"relu", relu_entry()},
          {"reorder", reorder_entry()},
          {"reshape", reshape_entry()},
          {"rotary", rotary_entry()},
          {"slice", slice_entry()},
          {"softmax", softmax_entry()},
          {"softmax_cross_entropy", softmax_cross_entropy_entry()},
          {"spectral_norm", spectral_norm_entry()},
          {"stochastic_depth", stochastic_depth_entry()}};
}

}  // namespace antichain::cuda
