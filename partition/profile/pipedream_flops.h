// This file computes an operator's FLOPs from its PyTorch description and its output size, because graph.txt
// states nothing else about it.
//
//   Conv2d(64, 192, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2), groups=2, bias=False)
//   Linear(in_features=9216, out_features=4096, bias=True)
#pragma once

#include <cstdint>
#include <string_view>

namespace antichain {

// Returns the FLOPs of a forward. A multiply-add counts as 2, as in our own operators (layers/*.cpp).
// `output_elements` are those of one micro-batch. An operator that is unknown or whose numbers cannot be read
// counts one FLOP per output element.
double pipedream_flops(std::string_view description, int64_t output_elements);

}  // namespace antichain
