// An optimiser whose update of a parameter goes element by element says so. Then a part of the parameter may
// be updated by itself, to the same bits. Any other update needs the parameter whole.
#pragma once

#include "framework/optimiser.h"

namespace antichain {

class UpdatesByElement {
 public:
  virtual ~UpdatesByElement() = default;
  virtual bool by_element(const ParamSpec&) const { return true; }
};

// Says the same of the optimiser that follows the gradients, within groups and averages.
bool updates_by_element(const Optimiser&, const ParamSpec&);

}  // namespace antichain
