// Pad and Resize change the height and width of images.
#include <fmt/format.h>

#include <algorithm>

#include "layers/interpolate.h"
#include "layers/operators.h"
#include "models/onnx/rows/rows.h"
#include "models/onnx/rows/windows.h"

namespace antichain::onnx::row {

void pad(Translation& t) {
  only("Pad of the mode", t.node().text("mode", "constant"), "constant");
  if (t.has(2) && !is_number(t.constant(2), 0)) throw Unsupported{"Pad by another value than 0"};
  if (t.has(3)) throw Unsupported{"Pad of chosen axes"};
  Value x = t.input();
  const std::vector<int64_t> pads = t.integers("pads", 1);
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return t.give(0, x);
  x = t.image(x, "Pad");
  if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[4] != 0 || pads[5] != 0)
    throw Unsupported{"Pad of other than height and width"};
  x.zeros = padding_of({pads[2], pads[3], pads[6], pads[7]});
  t.give(0, x);
}

void resize(Translation& t) {
  const Value x = t.image(t.input(), "Resize");
  const std::string mode = t.node().text("mode", "nearest");
  const std::string at = t.node().text("coordinate_transformation_mode", "half_pixel");
  InterpolateOptions o;
  if (mode == "linear" && (at == "half_pixel" || at == "pytorch_half_pixel" || at == "align_corners"))
    o = {.mode = Interpolation::bilinear, .align_corners = at == "align_corners"};
  else if (mode != "nearest" || at != "asymmetric" ||
           t.node().text("nearest_mode", "round_prefer_floor") != "floor")
    throw Unsupported{fmt::format("Resize of the mode {} at {}", mode, at)};
  const Constant scales = t.constant(2);
  if (t.has(3)) {
    const std::vector<int64_t> sizes = t.integers("sizes", 3);
    if (sizes.size() != 4) throw Unsupported{"Resize of other than height and width"};
    o.size = extent_of({sizes[2], sizes[3]}, "a size");
  } else if (scales && scales->is_float() && scales->elements() == 4) {
    const auto& s = std::get<std::vector<float>>(scales->values);
    if (s[0] != 1 || s[1] != 1 || !(s[2] > 0 && s[3] > 0 && s[2] < most_option && s[3] < most_option))
      throw Unsupported{"Resize of other than height and width"};
    o.scale = Scale(s[2], s[3]);
  } else {
    throw Unsupported{"Resize without sizes or scales that are constant"};
  }
  t.give(0, t.emit(std::make_shared<Interpolate>(o), {x}));
}

}  // namespace antichain::onnx::row
