// Before anything is computed, all ranks compare what they hold (a plan, a configuration, a version): a run whose
// ranks differ would hang or train nonsense.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/transport.h"

namespace antichain {

// "rank 2 has X, the others Y", X and Y being values: the odd ones are those that differ from most (where equally many hold
// two, from the one that the lowest rank holds). "" where all are equal.
std::string describe_odd(const std::vector<std::string>& values, const std::string& has,
                         const std::string& have);

// Collective. Error on every rank, naming `what` and the ranks whose `value` differs from most.
void agree(Transport&, const std::string& what, const std::string& value);

// Collective. Rank 0 runs `work`; an Error there is thrown on every rank, else all get its text.
std::string on_rank_zero(Transport&, const std::function<std::string()>& work);

}  // namespace antichain
