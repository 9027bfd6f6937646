#include "framework/grouped.h"

#include "framework/averaged.h"

namespace antichain {

size_t Grouped::group_of(std::string_view parameter) const {
  const auto found = group_of_.find(parameter);
  return found == group_of_.end() ? 0 : found->second;
}

const Grouped* grouped(const Optimiser& optimiser) { return dynamic_cast<const Grouped*>(&optimiser); }

const Optimiser& of_one_group(const Optimiser& optimiser) {
  const Averaged* both = averaged(optimiser);
  const Optimiser& of = both ? *both->of : optimiser;
  const Grouped* all = grouped(of);
  return all ? *all->groups[0].optimiser : of;
}

}  // namespace antichain
