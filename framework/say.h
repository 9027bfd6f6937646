// What the program writes to its standard streams, whatever their state: a disk may be full, and a pipe's
// reader may have gone or may pause. Notes, warnings and the reason why it ends go to standard error, and
// only say() and say_last() write there. Text that can't be written is dropped: they throw nothing and end
// nothing.
//
// The log of a run keeps what is printed, as plain text. It leaves out what only a terminal understands: a
// line that a progress bar overwrites again and again appears once, in its last state.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace antichain {

enum class Tone { note, warning, error };

// Writes a line of its own, "antichain: SENTENCE" or "antichain: warning: SENTENCE", after everything printed
// on standard output so far.
void say(Tone, const std::string& sentence) noexcept;
inline void note(const std::string& sentence) noexcept { say(Tone::note, sentence); }
inline void warn(const std::string& sentence) noexcept { say(Tone::warning, sentence); }

// Stops writing notes to the terminal; logs keep them. Warnings and errors are always written.
void leave_out_notes(bool);

// Says why the process is about to end, from any thread, below any unfinished line on the terminal. It does
// not wait for another thread, and not for long for a reader that pauses.
void say_last(const std::string& sentence) noexcept;

// Sets how a sentence becomes the text that is written, for the whole process (on a terminal, lines of its
// width). nullptr restores the form above.
using SentenceShape = std::string (*)(Tone, const std::string& sentence);
void shape_sentences(SentenceShape);

// Writes all bytes to the descriptor, waiting while a reader pauses, for at most `patience_s` seconds if that
// is not 0. Returns 0, or the errno of the failure (ETIMEDOUT: the patience ended). Throws nothing.
int write_to_stream(int descriptor, const char* bytes, size_t count, double patience_s = 0) noexcept;

// Sets a function that this thread calls now and then while it waits for a reader, so that the watchdog does
// not take the rank for one that hangs.
void while_writing_waits(std::function<void()> beat);

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
