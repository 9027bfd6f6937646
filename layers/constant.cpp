#include "layers/constant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "framework/error.h"
#include "framework/random.h"
#include "layers/check_inputs.h"

namespace antichain {
namespace {

constexpr size_t shown_values = 16;

Shape of_samples(const ConstantOptions& o, int64_t samples) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), o.shape.begin(), o.shape.end());
  return Shape(extents);
}

}  // namespace

Constant::Constant(ConstantOptions o) : options(std::move(o)) {
  const auto positive = [](int64_t extent) { return extent > 0; };
  if (options.shape.size() >= size_t(Shape::max_rank) || !std::ranges::all_of(options.shape, positive))
    throw Error(fmt::format("constant({}) wants up to {} positive extents for a sample",
                            fmt::join(options.shape, ", "), Shape::max_rank - 1));
  const int64_t count = std::ssize(options.values), of_shape = of_samples(options, 1).elements();
  if (count != 1 && count != of_shape)
    throw Error(fmt::format("{} has {} values, but wants one, or {}", str(), count, of_shape));
  if (!std::ranges::all_of(options.values, [](float v) { return std::isfinite(v); }))
    throw Error(fmt::format("{} has values that are not finite", str()));
}

std::string Constant::str() const {
  const std::vector<float>& values = options.values;
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::string text = values.size() <= shown_values ? fmt::format("{}", fmt::join(values, ", "))
                                                         : fmt::format("{} values of the hash {:016x}",
                                                                       values.size(), hash_bytes(bytes));
  return fmt::format("constant({}: {})", fmt::join(options.shape, " x "), text);
}

Signature Constant::infer(std::span<const Shape> x) const {
  check_inputs("constant", x, 1, 0);
  Signature s;
  s.y = {.shape = of_samples(options, x[0][0])};
  return s;
}

std::vector<float> Constant::sample() const {
  std::vector<float> all = options.values;
  if (all.size() == 1) all.resize(size_t(of_samples(options, 1).elements()), all[0]);
  return all;
}

NodeId constant(Graph& graph, std::string name, NodeId x, ConstantOptions options) {
  return graph.add(std::move(name), std::make_shared<Constant>(std::move(options)), {x});
}

}  // namespace antichain
