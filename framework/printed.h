// The log of a run keeps what the program prints on its standard streams, as plain text. It leaves out what
// only a terminal understands: a line that a progress bar overwrites again and again appears once, in its
// last state.
#pragma once

#include <string>
#include <string_view>

namespace antichain {

// Starts to keep in memory what is printed; a second call changes nothing.
void keep_what_is_printed();
// Writes what was kept, and what is printed from now on, to this file; with `append`, after what the file
// has. Throws Error where it can't be written.
void write_what_is_printed(const std::string& file, bool append);
// Returns why the file lacks some of the output, or "".
std::string why_print_is_lost();

// Every function that writes to a standard stream calls this. It costs nothing where nothing is kept.
void printed(std::string_view text) noexcept;

// Turns output into the text that a terminal shows in the end: a line that is begun anew replaces the earlier
// one; colours and the like are left out.
class PlainText {
 public:
  std::string add(std::string_view bytes);  // the lines that they complete

 private:
  enum class State { text, escape, sequence };
  State state_ = State::text;
  std::string line_;
  bool returned_ = false;  // to the line's beginning
};

}  // namespace antichain
