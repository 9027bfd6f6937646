// A Precision says what a network computes in. Parameters and their gradients, slots, statistics and
// losses are float32 in every precision ("master weights": Micikevicius et al., "Mixed Precision Training",
// ICLR 2018). The tensors between nodes and their gradients are stored in the precision's type, which decides
// the bytes of messages and the factors of products.
#pragma once

#include <string_view>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

enum class Precision { float32, bf16 };

std::string_view name_of(Precision);
std::vector<std::string> precision_names();
Precision parse_precision(std::string_view name);  // Error listing the names

// Returns the type of the tensors between nodes.
DType storage(Precision);

}  // namespace antichain
