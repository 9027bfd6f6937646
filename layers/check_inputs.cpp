#include "layers/check_inputs.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain {

void check_inputs(std::string_view op, std::span<const Shape> x, int count, int rank) {
  if (int(x.size()) != count)
    throw Error(fmt::format("{} takes {} input{}, not {}", op, count, count == 1 ? "" : "s", x.size()));
  for (const Shape& shape : x) {
    if (rank > 0 && shape.rank() != rank)
      throw Error(fmt::format("{} wants an input of {} dimensions, not {}", op, rank, shape.str()));
    for (int64_t extent : shape) {
      if (extent < 1) throw Error(fmt::format("{} has an empty input, {}", op, shape.str()));
    }
  }
}

std::string str(Extent extent) {
  return extent.h == extent.w ? fmt::format("{}", extent.h) : fmt::format("{}x{}", extent.h, extent.w);
}

std::string str(const Padding& pad) {
  if (pad.before == pad.after) return str(pad.before);
  return fmt::format("{} before, {} after", str(pad.before), str(pad.after));
}

std::string str(const Initialiser& init) {
  return fmt::format("{} {}", initialiser_names[size_t(init.kind)], init.a);
}

}  // namespace antichain
