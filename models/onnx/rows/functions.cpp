// These are activations, softmax and dropout, and operators that leave every number as it is.
#include <fmt/format.h>

#include <cmath>

#include "layers/activate.h"
#include "layers/dropout.h"
#include "layers/relu.h"
#include "layers/softmax.h"
#include "models/onnx/rows/rows.h"

namespace antichain::onnx::row {

void activate(Translation& t, ActivationFunction f) {
  t.give(0, t.same(std::make_shared<Activate>(f), t.input()));
}

void gelu(Translation& t) {
  const std::string form = t.node().text("approximate", "none");
  if (form != "none" && form != "tanh")
    throw Unsupported{fmt::format("Gelu with the approximation {}", form)};
  activate(t, form == "tanh" ? ActivationFunction::gelu_tanh : ActivationFunction::gelu);
}

void hardsigmoid(Translation& t) {
  const float alpha = t.node().real("alpha", 0.2f), beta = t.node().real("beta", 0.5f);
  if (std::abs(alpha - 1.0f / 6) > 1e-4f || beta != 0.5f)
    throw Unsupported{fmt::format("HardSigmoid with alpha {} and beta {} (1/6 and 0.5 are)", alpha, beta)};
  activate(t, ActivationFunction::hardsigmoid);
}

void relu(Translation& t) { t.give(0, t.same(std::make_shared<Relu>(), t.input())); }

void clip(Translation& t) {
  const auto bound = [&](const char* attribute, size_t i) -> std::optional<double> {
    if (t.node().find(attribute)) return t.node().real(attribute, 0);
    return t.has(i) ? number_of(*t.weight(i, attribute)) : std::nullopt;
  };
  const std::optional<double> low = bound("min", 1), high = bound("max", 2);
  if (low == 0 && (!high || *high > 3e38)) return relu(t);
  if (low != 0 || high != 6) throw Unsupported{"Clip to other bounds than 0 and 6 (ReLU6), or 0 alone,"};
  activate(t, ActivationFunction::relu6);
}

void identity(Translation& t) { t.give(0, t.input()); }

void cast(Translation& t) {
  const int64_t to = t.node().integer("to", type_float);
  if (to != type_float && to != type_double)
    throw Unsupported{fmt::format("Cast of a computed tensor to type {}", to)};
  identity(t);
}

void dropout(Translation& t) {
  double p = t.node().real("ratio", 0.5f);
  if (t.has(1)) p = number_of(*t.weight(1, "a ratio")).value_or(-1);
  p = std::round(p * 1e6) / 1e6;
  if (!(p >= 0 && p < 1)) throw Unsupported{fmt::format("Dropout of {}", p)};
  if (p == 0) return identity(t);
  // The name that keys the random numbers is that of the node in the GraphFile, which is made anew from text.
  t.give(0, t.same(std::make_shared<Dropout>(p, t.node().name), t.input()));
}

void softmax(Translation& t) {
  const Value x = t.input();
  const int last = t.rank(x) - 1, axis = t.axis(x, t.node().integer("axis", t.opset < 13 ? 1 : -1));
  if (axis < 1 || (t.opset < 13 && axis != last))
    throw Unsupported{fmt::format("Softmax over axis {}", axis)};
  const auto of = [&](const Value& y) { return t.emit(std::make_shared<Softmax>(), {y}); };
  t.give(0, last == 1 ? of(t.plain(x)) : t.over_channels(x, axis, of));
}

}  // namespace antichain::onnx::row
