// FLOPs of an operator from how PyTorch prints it and from the size of its output: what graph.txt leaves us.
//
//   Conv2d(64, 192, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2), groups=2, bias=False)
//   Linear(in_features=9216, out_features=4096, bias=True)
#pragma once

#include <cstdint>
#include <string_view>

namespace antichain {

// Forward, a multiply-add counted as 2, as our own operators count (layers/*.cpp). `output_elements`: of one
// micro-batch. An operator that we do not know, or whose numbers we cannot read, counts one FLOP per output
// element.
double pipedream_flops(std::string_view description, int64_t output_elements);

}  // namespace antichain
