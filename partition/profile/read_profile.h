// This file reads a profile from any file format that the program knows.
#pragma once

#include <string>

#include "partition/profile/pipedream_profile.h"
#include "partition/profile/profile.h"

namespace antichain {

// Reads our own JSON when the first non-blank character is a brace, else PipeDream's graph.txt. Throws the
// Errors of those readers.
// `weight_share` is for PipeDream's (partition/profile/pipedream_profile.h).
Profile read_profile(const std::string& text, const std::string& origin,
                     double weight_share = default_weight_share);

}  // namespace antichain
