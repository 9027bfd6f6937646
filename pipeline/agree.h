// Before anything is computed, all ranks compare what they hold (a plan, a configuration, a version): a run whose
// ranks differ would hang or train nonsense.
#pragma once

#include <string>

#include "pipeline/transport.h"

namespace antichain {

// Collective. Error on every rank, naming `what` and the ranks whose `value` differs from rank 0's.
void agree(Transport&, const std::string& what, const std::string& value);

// Collective. Rank 0 runs `work`; an Error there is thrown on every rank, else all get its text.
std::string on_rank_zero(Transport&, const std::function<std::string()>& work);

}  // namespace antichain
