#include "layers/cuda/convolution_graph.h"

#include <fmt/format.h>

#include <vector>

#include "framework/cuda/switches.h"

namespace antichain::cuda {
namespace {

// Dimensions are in logical order (N, C, H, W), strides those of NHWC.
Descriptor describe(TensorId id, const Shape& s, DType dtype) {
  return tensor(id, dtype, {s.begin(), s.end()}, {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]});
}

// cuDNN reads the number of groups off the channels of x and of the weights.
Descriptor describe(const Convolution& c) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const auto both = [](Extent e) { return std::vector<int64_t>{e.h, e.w}; };
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, both(c.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, both(c.stride))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, both(c.pad.before))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, both(c.pad.after));
  return d.finalise("describe a convolution");
}

// Names holds the names that the three passes' attributes have.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};

Names names_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::weight_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

}  // namespace

Descriptor describe(const Convolution& c, Pass pass) {
  const Names names = names_of(pass);
  const DType weight = pass == Pass::weight_gradient ? c.gradient : c.dtype;
  Descriptor d(names.type);
  d.set(names.convolution, describe(c))
      .set(names.x, describe(id_x, c.x, c.dtype))
      .set(names.weight, describe(id_weight, c.weight, weight))
      .set(names.y, describe(id_y, c.y, c.dtype))
      .set(names.alpha, 1.0f)
      .set(names.beta, 0.0f);
  return d.finalise("describe a pass of a convolution");
}

// Products of bf16 numbers are exact wherever they are made, and sums are float32; but Winograd's transforms
// of bf16 numbers are no bf16 numbers and would be rounded to some before they are multiplied.
EngineRule rule_for(DType dtype, Factors factors) {
  const bool bf16 = dtype == DType::bf16;
  return {.tensor_cores = bf16 || factors != Factors::exact, .winograd = !bf16, .without = skipped_engines()};
}

std::string in_words(const Convolution& c, Pass pass, const EngineRule& rule) {
  const char* name = pass == Pass::forward          ? "forward"
                     : pass == Pass::input_gradient ? "input gradient"
                                                    : "weight gradient";
  const char* type = c.dtype == DType::bf16 ? "bf16" : rule.tensor_cores ? "TF32" : "float32";
  const auto both = [](Extent e) { return fmt::format("{} {}", e.h, e.w); };
  std::string pad = both(c.pad.before);
  if (c.pad.before != c.pad.after) pad += " to " + both(c.pad.after);
  if (c.dilation != Extent(1)) pad += " dilation " + both(c.dilation);
  if (pass == Pass::weight_gradient && c.gradient == DType::bf16) pad += " rounded to bf16";
  return fmt::format("{} {} x {} weights {} stride {} pad {}", name, type, c.x.str(), c.weight.str(),
                     both(c.stride), pad);
}

}  // namespace antichain::cuda
