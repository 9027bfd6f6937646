#include "framework/grouped.h"

namespace antichain {

size_t Grouped::group_of(std::string_view parameter) const {
  const auto found = group_of_.find(parameter);
  return found == group_of_.end() ? 0 : found->second;
}

const Grouped* grouped(const Optimiser& optimiser) { return dynamic_cast<const Grouped*>(&optimiser); }

}  // namespace antichain
