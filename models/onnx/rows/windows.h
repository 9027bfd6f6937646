// These functions read how a window slides over an image: a node's kernel, stride, dilation and padding. All
// throw Unsupported when the numbers are not those of images, which have a height and a width.
#pragma once

#include <vector>

#include "layers/window.h"
#include "models/onnx/translation.h"

namespace antichain::onnx::row {

// Returns a height and a width of 0 or more. `what` is what an error calls them.
Extent extent_of(const std::vector<int64_t>& height_and_width, const char* what);

// These three are at least 1.
Extent kernel_of(const std::vector<int64_t>& height_and_width);
Extent stride_of(const Node&);
Extent dilation_of(const Node&);

int groups_of(const Node&);

// Returns the padding of the four numbers that ONNX has: above, left, below, right.
Padding padding_of(const std::vector<int64_t>& pads);
// Returns the zeros around the image x that the node at hand asks for, by numbers or by a rule.
Padding padding_at(const Translation&, const Value& x, Extent kernel, Extent stride, Extent dilation);

}  // namespace antichain::onnx::row
