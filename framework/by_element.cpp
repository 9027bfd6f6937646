#include "framework/by_element.h"

#include "framework/grouped.h"

namespace antichain {

bool updates_by_element(const Optimiser& optimiser, const ParamSpec& param) {
  const auto* says = dynamic_cast<const UpdatesByElement*>(&of_one_group(optimiser));
  return says && says->by_element(param);
}

}  // namespace antichain
