// Makes text from files or from the system fit for a terminal, because it may hold control characters. Bytes
// that would move the cursor, change colours, turn the direction of writing or hide text are shown as \x..
// instead.
#pragma once

#include <string>
#include <string_view>

namespace antichain {

constexpr size_t most_printable = 200;         // bytes of a name or a value that a message quotes
constexpr size_t most_printable_line = 1'200;  // bytes of a sentence

// Returns one line, in which control characters (line breaks too), direction marks, invisible characters and
// invalid UTF-8 are escaped. The middle of a text of more than `most` bytes is left out.
std::string printable(std::string_view text, size_t most = most_printable);

// Does the same for every line of a sentence, or of one with a table below it. A line break stays where the
// next line is empty or indented, as the lines of our tables are, so that no text can begin a line that looks
// like one of our messages.
std::string printable_lines(std::string_view text, size_t most_a_line = most_printable_line);

}  // namespace antichain
