// What a network computes in. Parameters and their gradients, momentum, statistics and losses are float32 in
// every precision ("master weights": Micikevicius et al., "Mixed Precision Training", ICLR 2018); what
// differs is how the tensors between nodes and their gradients are stored, and so what a message weighs and
// what products are made of.
#pragma once

#include <string_view>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

enum class Precision { float32, bf16 };

std::string_view name_of(Precision);
std::vector<std::string> precision_names();
Precision parse_precision(std::string_view name);  // Error listing the names

// Of the tensors between nodes.
DType storage(Precision);

}  // namespace antichain
