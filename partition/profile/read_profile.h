// This file reads a profile from any file format that the program knows.
#pragma once

#include <string>

#include "partition/profile/profile.h"

namespace antichain {

// Reads our own JSON when the first non-blank character is a brace, else PipeDream's graph.txt. Throws the
// Errors of those readers.
Profile read_profile(const std::string& text, const std::string& origin);

}  // namespace antichain
