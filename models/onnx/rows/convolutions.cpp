// Conv and ConvTranspose are convolutions of images.
#include <fmt/format.h>

#include "layers/conv2d.h"
#include "layers/conv_transpose2d.h"
#include "models/onnx/rows/rows.h"
#include "models/onnx/rows/windows.h"

namespace antichain::onnx::row {
namespace {

Constant kernels(Translation& t) {
  Constant weight = t.weight(1, "a weight");
  if (weight->shape.size() != 4)
    throw Unsupported{fmt::format("{} with a weight of {}", t.node().op, weight->shape_text())};
  return weight;
}

Extent kernel_size(const Constant& weight) { return kernel_of({weight->shape[2], weight->shape[3]}); }

Extent sum(Extent a, Extent b) { return {a.h + b.h, a.w + b.w}; }

}  // namespace

void conv(Translation& t) {
  Value x = t.padded_input();
  const Padding zeros = x.zeros;
  x.zeros = 0;
  x = t.image(x, "Conv");
  const Constant weight = kernels(t);
  const Constant bias = t.has(2) ? t.weight(2, "a bias") : nullptr;
  const Extent kernel = kernel_size(weight), stride = stride_of(t.node()), dilation = dilation_of(t.node());
  const Padding own = padding_at(t, x, kernel, stride, dilation);
  t.give(0, t.emit(std::make_shared<Conv2d>(
                       Conv2dOptions{.out = weight->shape[0],
                                     .kernel = kernel,
                                     .stride = stride,
                                     .pad = {sum(zeros.before, own.before), sum(zeros.after, own.after)},
                                     .dilation = dilation,
                                     .groups = groups_of(t.node()),
                                     .bias = bias != nullptr}),
                   {x}, {}, weight_and_bias(weight, bias)));
}

void conv_transpose(Translation& t) {
  const Value x = t.image(t.input(), "ConvTranspose");
  const Constant weight = kernels(t);
  const Constant bias = t.has(2) ? t.weight(2, "a bias") : nullptr;
  only("auto_pad", t.node().text("auto_pad", "NOTSET"), "NOTSET");
  if (t.node().find("output_shape")) throw Unsupported{"output_shape of ConvTranspose"};
  const Padding pad = padding_of(t.node().integers("pads", {0, 0, 0, 0}));
  if (pad.before != pad.after) throw Unsupported{"ConvTranspose with another padding at the ends"};
  const int groups = groups_of(t.node());
  t.give(0, t.emit(std::make_shared<ConvTranspose2d>(ConvTranspose2dOptions{
                       .out = weight->shape[1] * groups,
                       .kernel = kernel_size(weight),
                       .stride = stride_of(t.node()),
                       .pad = pad.before,
                       .output_pad = extent_of(t.node().integers("output_padding", {0, 0}), "output_padding"),
                       .dilation = dilation_of(t.node()),
                       .groups = groups,
                       .bias = bias != nullptr}),
                   {x}, {}, weight_and_bias(weight, bias)));
}

}  // namespace antichain::onnx::row
