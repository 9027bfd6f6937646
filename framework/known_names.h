// Answers a name that is not known with the one that was probably meant.
#pragma once

#include <string>
#include <vector>

namespace antichain {

// Throws Error (usage) that lists what is known and suggests `meant`, or else the nearest name. `what` names
// the kind: "model".
[[noreturn]] void refuse_name(const std::string& what, const std::string& name,
                              const std::vector<std::string>& known, const std::string& meant = "");

// Returns the nearest of `known` to `word`, or "" when none is near. Near means that at most a third of the
// word, or two letters, differ (Levenshtein, "Binary codes capable of correcting deletions, insertions, and
// reversals", 1966).
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace antichain
