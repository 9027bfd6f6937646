#include "models/onnx/rows/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "layers/operators.h"

namespace antichain::onnx::row {
namespace {

int option_of(int64_t value, const char* what) {
  if (value < 0 || value > most_option) throw Unsupported{fmt::format("{} of {}", what, value)};
  return int(value);
}

Extent positive(Extent e, const char* what) {
  if (e.h < 1 || e.w < 1) throw Unsupported{fmt::format("{} of {} x {}", what, e.h, e.w)};
  return e;
}

}  // namespace

Extent extent_of(const std::vector<int64_t>& height_and_width, const char* what) {
  if (height_and_width.size() != 2)
    throw Unsupported{
        fmt::format("{} of {} numbers (images have a height and a width)", what, height_and_width.size())};
  return {option_of(height_and_width[0], what), option_of(height_and_width[1], what)};
}

Extent kernel_of(const std::vector<int64_t>& height_and_width) {
  return positive(extent_of(height_and_width, "a kernel"), "a kernel");
}

Extent stride_of(const Node& node) {
  return positive(extent_of(node.integers("strides", {1, 1}), "strides"), "a stride");
}

Extent dilation_of(const Node& node) {
  return positive(extent_of(node.integers("dilations", {1, 1}), "dilations"), "a dilation");
}

int groups_of(const Node& node) { return option_of(node.integer("group", 1), "groups"); }

Padding padding_of(const std::vector<int64_t>& pads) {
  if (pads.size() != 4) throw Unsupported{fmt::format("padding of {} numbers (images have 4)", pads.size())};
  return {extent_of({pads[0], pads[1]}, "padding"), extent_of({pads[2], pads[3]}, "padding")};
}

Padding padding_at(const Translation& t, const Value& x, Extent kernel, Extent stride, Extent dilation) {
  const std::string how = t.node().text("auto_pad", "NOTSET");
  if (how == "NOTSET") return padding_of(t.node().integers("pads", {0, 0, 0, 0}));
  if (how == "VALID") return 0;
  if (how != "SAME_UPPER" && how != "SAME_LOWER") throw Unsupported{fmt::format("auto_pad {}", how)};
  const std::vector<int64_t> shape = t.shape(x);
  const auto total = [](int64_t in, int k, int s, int d) {
    return int(std::max<int64_t>(0, ((in + s - 1) / s - 1) * s + reach(k, d) - in));
  };
  const Extent all(total(shape[2], kernel.h, stride.h, dilation.h),
                   total(shape[3], kernel.w, stride.w, dilation.w));
  const Extent less(all.h / 2, all.w / 2), more(all.h - less.h, all.w - less.w);
  return how == "SAME_UPPER" ? Padding(less, more) : Padding(more, less);
}

}  // namespace antichain::onnx::row
