// What the program prints on its standard streams, kept as plain text as well: the log of a run. Without what
// only a terminal understands: the line that a progress bar writes again and again is there once, as it was
// left.
#pragma once

#include <string>
#include <string_view>

namespace antichain {

// From here on what is printed is kept in memory; a second call changes nothing.
void keep_what_is_printed();
// From here on it is in this file, what was kept first; `append`: behind what the file has. Error where it
// can't be written.
void write_what_is_printed(const std::string& file, bool append);
// Why the file lacks some of it, or "".
std::string why_print_is_lost();

// Called by whatever writes to a standard stream. Costs nothing where nothing is kept.
void printed(std::string_view text) noexcept;

// As it stands on a terminal in the end: a line that is begun anew replaces what stood there; colours and the
// like are left out.
class PlainText {
 public:
  std::string add(std::string_view bytes);  // the lines that they complete

 private:
  enum class State { text, escape, sequence };
  State state_ = State::text;
  std::string line_;
  bool returned_ = false;  // to the line's begin
};

}  // namespace antichain
