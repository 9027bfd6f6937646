// The program writes notes, warnings and the reason why it ends to standard error, and only these functions
// write there. Text that can't be written (the stream is closed, its disk is full, its reader has gone) is
// dropped: these functions throw nothing and end nothing.
#pragma once

#include <string>

namespace antichain {

enum class Tone { note, warning, error };

// Writes a line of its own, "antichain: SENTENCE" or "antichain: warning: SENTENCE", after everything printed
// on standard output so far.
void say(Tone, const std::string& sentence) noexcept;
inline void note(const std::string& sentence) noexcept { say(Tone::note, sentence); }
inline void warn(const std::string& sentence) noexcept { say(Tone::warning, sentence); }

// Stops writing notes to the terminal; logs keep them (framework/printed.h). Warnings and errors are always
// written.
void leave_out_notes(bool);

// Says why the process is about to end, from any thread, below any unfinished line on the terminal. It does
// not wait for another thread, and not for long for a reader that pauses.
void say_last(const std::string& sentence) noexcept;

// Sets how a sentence becomes the text that is written, for the whole process (on a terminal, lines of its
// width). nullptr restores the form above.
using SentenceShape = std::string (*)(Tone, const std::string& sentence);
void shape_sentences(SentenceShape);

}  // namespace antichain
