// The three standard streams, in whatever state the program was given them: closed, a pipe whose reader has gone or pauses,
// a full disk. None of that may change what a run computes.
//
//   closed            /dev/null takes its place: no file of ours gets its number and what is printed
//   reader gone, full what is printed from then on is dropped; the program says so once, at its end
//   reader pauses     printing waits for it, and the watchdog knows that
#pragma once

#include <cstdio>
#include <string>

#include "pipeline/progress.h"

namespace antichain {

class StandardStreams {
 public:
  StandardStreams();
  ~StandardStreams();  // stdout is what it was before
  StandardStreams(const StandardStreams&) = delete;

  // Writes out what is buffered. The reason why something that was printed is lost, or "".
  std::string lost();

 private:
  static ssize_t write(void* self, const char* bytes, size_t count);
  void write_all(const char* bytes, size_t count);

  std::FILE *original_, *stream_;
  int error_ = 0;  // errno of the first failure
};

// Of this thread: what is kept alive while its printing waits for a reader. nullptr: nothing.
void print_beats(Progress*);

}  // namespace antichain
