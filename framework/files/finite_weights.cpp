#include "framework/files/finite_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/error.h"

namespace antichain {

std::string describe_bad_number(const NamedTensor& tensor) {
  if (!tensor.is_float()) return "";
  const bool variance = tensor.name.ends_with("running_var");
  const auto& values = std::get<0>(tensor.values);
  const auto bad =
      std::ranges::find_if(values, [&](float x) { return !std::isfinite(x) || (variance && x < 0); });
  if (bad == values.end()) return "";
  const std::string what = std::isnan(*bad)   ? "a NaN"
                           : std::isinf(*bad) ? "an infinite number"
                                              : fmt::format("the variance {}", *bad);
  return fmt::format("'{}' has {} (element {} of {})", tensor.name, what, bad - values.begin() + 1,
                     values.size());
}

void check_numbers(const Weights& weights, std::span<const std::string> names, const std::string& origin) {
  for (const std::string& name : names) {
    const NamedTensor* tensor = weights.find(name);
    const std::string bad = tensor ? describe_bad_number(*tensor) : "";
    if (!bad.empty())
      throw Error(fmt::format("{}: {}, with which nothing can be computed", origin, bad),
                  "take weights from before they went wrong", ExitCode::not_a_number);
  }
}

}  // namespace antichain
