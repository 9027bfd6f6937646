// This file knows the terminal that the program prints on: its width, and whether it shows colours.
#pragma once

#include <cstdio>
#include <string>

#include "framework/say.h"

namespace antichain {

// Returns the terminal's width in columns, or 0 where `out` is none. mpirun gives every rank a terminal of no
// width, whatever its own output goes to; then mpirun's output counts.
int terminal_columns(std::FILE* out);
int columns_of_standard_error();

// Returns for how many columns tables and texts on standard output are laid out: the terminal's, else the
// environment's COLUMNS, else 80.
size_t text_columns();

enum class Style { plain, heading, good, doubtful, bad };
// Returns the text with the terminal's colour codes around it, where the stream is a terminal with colours.
// NO_COLOR (https://no-color.org), CLICOLOR=0 and TERM=dumb turn colours off; CLICOLOR_FORCE other than 0
// turns them on everywhere.
std::string styled(Style, const std::string& text);
std::string styled_on_standard_error(Style, const std::string& text);

// Returns a sentence (framework/say.h) as it stands on standard error: on a terminal it is wrapped at words,
// and warnings and errors have colours. Elsewhere a sentence stays one line. If a text has several lines,
// only the first is wrapped, because the others are a table.
std::string shaped(Tone, const std::string& sentence);

}  // namespace antichain
