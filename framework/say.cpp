#include "framework/say.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "framework/printable.h"
#include "framework/printed.h"
#include "framework/stream_write.h"

namespace antichain {
namespace {

constexpr double last_patience_s = 2;

std::string plain(Tone tone, const std::string& sentence) {
  return (tone == Tone::warning ? "antichain: warning: " : "antichain: ") + sentence + "\n";
}

std::atomic<SentenceShape> shape{&plain};
std::atomic<bool> without_notes = false;

void write(Tone tone, const std::string& text, double patience_s) {
  printed("\r" + text);  // in a log, in the place of a bar that is not finished
  if (tone == Tone::note && without_notes) return;
  write_to_stream(STDERR_FILENO, text.data(), text.size(), patience_s);
}

// Flushes the header, so that an error stands below it in a log of both streams. A thread that is printing
// now flushes by itself.
void flush_standard_output() {
  if (::ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  ::funlockfile(stdout);
}

}  // namespace

void shape_sentences(SentenceShape wanted) { shape = wanted ? wanted : &plain; }

void leave_out_notes(bool so) { without_notes = so; }

void say(Tone tone, const std::string& sentence) noexcept {
  try {
    flush_standard_output();
    write(tone, shape.load()(tone, printable_lines(sentence)), 0);
  } catch (...) {  // there is no memory left for the text
  }
}

void say_last(const std::string& sentence) noexcept {
  try {
    write(Tone::error, "\n" + shape.load()(Tone::error, printable_lines(sentence)), last_patience_s);
  } catch (...) {
  }
}

}  // namespace antichain
