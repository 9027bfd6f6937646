// How what is said on standard error (framework/say.h) looks on a terminal: wrapped at words, warnings and errors in colour.
#pragma once

#include <string>

#include "framework/say.h"

namespace antichain {

// Elsewhere one line. Of several lines, only the first is wrapped: what follows is a table.
std::string shaped(Tone, const std::string& sentence);

}  // namespace antichain
