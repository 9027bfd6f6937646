// The terminal that the program prints on, where it has one: its width, and whether it shows colours.
#pragma once

#include <cstdio>
#include <string>

namespace antichain {

// The terminal's width, or 0 where `out` is none. mpirun gives every rank a terminal of its own, of no width, whatever
// its own output goes to: then it is mpirun's output that counts.
int terminal_columns(std::FILE* out);
int columns_of_standard_error();

// For how many columns tables and texts on standard output are laid out: the terminal's, else the environment's COLUMNS, else 80.
size_t text_columns();

enum class Style { plain, heading, good, doubtful, bad };
// With the terminal's codes around it, on a terminal with colours: not where NO_COLOR is set (https://no-color.org), CLICOLOR is 0
// or TERM is dumb; CLICOLOR_FORCE other than 0 wants them everywhere. Standard output's; of sentences, standard error's.
std::string styled(Style, const std::string& text);
std::string styled_on_standard_error(Style, const std::string& text);

}  // namespace antichain
