// These operators work element by element: y lies as x does, and dx as dy does, and each number of the one
// depends on that number of the other and on what the forward kept. So every engine's kernel lets y be x
// itself, and dx be dy itself. Where nobody else reads x or dy, a step then holds one tensor in place of two.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace antichain {

constexpr bool works_in_place(std::string_view op_type) {
  constexpr std::array<std::string_view, 4> all = {"activate", "dropout", "relu", "stochastic_depth"};
  return std::ranges::find(all, op_type) != all.end();
}

}  // namespace antichain
