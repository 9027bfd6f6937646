// A profile from a file of any kind we know.
#pragma once

#include <string>

#include "partition/profile/profile.h"

namespace antichain {

// Our own JSON when the first character that is no blank is a brace, else PipeDream's graph.txt. Error as
// theirs.
Profile read_profile(const std::string& text, const std::string& origin);

}  // namespace antichain
