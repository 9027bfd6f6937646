// Before anything is computed, all ranks compare what they hold (a plan, a configuration, a version): a run
// whose ranks differ would hang or train nonsense.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "pipeline/transport/job.h"

namespace antichain {

// "rank 2 has X, the others Y", X and Y being values: the odd ones are those that differ from most (where
// equally many hold two, from the one that the lowest rank holds). "" where all are equal.
std::string describe_odd(const std::vector<std::string>& values, const std::string& has,
                         const std::string& have);

// Names and values, in the order in which they are compared: {"the plan", "1f0c"}.
using Held = std::vector<std::pair<std::string, std::string>>;
// Given the name that ranks hold differently and the values of all ranks: what to do about it.
using Advice = std::function<std::string(const std::string& name, const std::vector<std::string>& values)>;

// Collective. Error on every rank that names the first thing that is not alike on all of them, with the odd
// ranks, their hosts and the values: "the plan is 1f0c on rank 2 (node3), but 77aa on the others".
void agree(Job&, const Held&, const Advice&, ExitCode = ExitCode::bad_input);
void agree(Job&, const std::string& name, const std::string& value);

// Collective. Rank 0 runs `work`; an Error there is thrown on every rank, else all get its text.
std::string on_rank_zero(Job&, const std::function<std::string()>& work);

}  // namespace antichain
