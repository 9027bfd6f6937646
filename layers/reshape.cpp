#include "layers/reshape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Reshape::Reshape(std::vector<int64_t> s) : shape(std::move(s)) {
  const bool extents = std::ranges::all_of(shape, [](int64_t extent) { return extent > 0 || extent == -1; });
  if (!extents || std::ranges::count(shape, -1) > 1 || shape.size() >= size_t(Shape::max_rank))
    throw Error(fmt::format("{} wants up to {} positive extents for a sample, of which one may be -1", str(),
                            Shape::max_rank - 1));
}

std::string Reshape::str() const { return fmt::format("reshape({})", fmt::join(shape, ", ")); }

Signature Reshape::infer(std::span<const Shape> x) const {
  check_inputs("reshape", x, 1, 0);
  const int64_t of_sample = x[0].elements() / x[0][0];
  std::vector<int64_t> given;
  std::ranges::copy_if(shape, std::back_inserter(given), [](int64_t extent) { return extent != -1; });
  const int64_t known = Shape(given).elements();
  const bool fits = std::ranges::count(shape, -1) ? of_sample % known == 0 : of_sample == known;
  if (!fits) throw Error(fmt::format("{} does not fit the samples of {}", str(), x[0].str()));
  std::vector<int64_t> all = {x[0][0]};
  for (const int64_t extent : shape) all.push_back(extent == -1 ? of_sample / known : extent);
  Signature s;
  s.y = {.shape = Shape(all)};
  return s;
}

NodeId reshape(Graph& graph, std::string name, NodeId x, std::vector<int64_t> shape) {
  return graph.add(std::move(name), std::make_shared<Reshape>(std::move(shape)), {x});
}

}  // namespace antichain
