// On a terminal, sentences on standard error (framework/say.h) are wrapped at words, and warnings and errors
// have colours.
#pragma once

#include <string>

#include "framework/say.h"

namespace antichain {

// Elsewhere a sentence stays one line. If a text has several lines, only the first is wrapped, because the
// others are a table.
std::string shaped(Tone, const std::string& sentence);

}  // namespace antichain
