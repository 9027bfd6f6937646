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

// Returns "rank 2 has X, the others Y" with the values X and Y, or "" where all are equal. The odd ranks are
// those that differ from most. Where two values are equally frequent, that of the lowest rank counts as
// usual.
std::string describe_odd(const std::vector<std::string>& values, const std::string& has,
                         const std::string& have);

// Held lists names and values in the order in which they are compared: {"the plan", "1f0c"}.
using Held = std::vector<std::pair<std::string, std::string>>;
// Advice gets the name of what ranks hold differently and all ranks' values, and returns what to do about it.
using Advice = std::function<std::string(const std::string& name, const std::vector<std::string>& values)>;

// Collective. Throws Error on every rank with the first thing that is not the same on all of them, the odd
// ranks, their hosts and the values: "the plan is 1f0c on rank 2 (node3), but 77aa on the others".
void agree(Job&, const Held&, const Advice&, ExitCode = ExitCode::bad_input);
void agree(Job&, const std::string& name, const std::string& value);

// Collective. Rank 0 runs `work`, and all ranks get its text. An Error there is thrown on every rank.
std::string on_rank_zero(Job&, const std::function<std::string()>& work);

}  // namespace antichain
