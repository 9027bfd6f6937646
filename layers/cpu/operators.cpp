// This file has the tables of the operators and of the optimisers of the "cpu" backend.
#include "layers/cpu/backend.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/updates.h"

namespace antichain::cpu {

Operators operators() {
  return {{"activate", activate_entry()},
          {"adaptive_average_pool", adaptive_average_pool_entry()},
          {"add", add_entry()},
          {"attention", attention_entry()},
          {"average_pool", average_pool_entry()},
          {"batch_norm", batch_norm_entry()},
          {"class_token", class_token_entry()},
          {"concat", concat_entry()},
          {"constant", constant_entry()},
          {"conv2d", conv2d_entry()},
          {"conv_transpose2d", conv_transpose2d_entry()},
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
          {"linear", linear_entry()},
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

Updates updates() {
  return {
      {"adamw", one_by_one(adamw)},        {"adamw ahead", one_by_one(adamw_ahead)}, {"ema", one_by_one(ema)},
      {"muon", one_by_one(muon)},          {"muon ahead", one_by_one(muon_ahead)},   {"sgd", one_by_one(sgd)},
      {"sgd ahead", one_by_one(sgd_ahead)}};
}

}  // namespace antichain::cpu
