// StandardStreams handles the three standard streams in whatever state the program gets them: closed, a pipe
// whose reader has gone or pauses, a full disk. No such state may change what a run computes.
//
//   closed         /dev/null takes its place, so that no file of ours gets its number and what is printed
//   reader gone    further output is dropped: `antichain info | head` has read what it wanted
//   full           output is dropped too, and the program says so once, at its end
//   reader pauses  printing waits for it, and the watchdog knows that
//
// Standard error has its rules in framework/say.h, and --json - has its rules in app/cli/output_file.h.
#pragma once

#include <cstdio>
#include <string>

namespace antichain {

class StandardStreams {
 public:
  StandardStreams();
  ~StandardStreams();  // stdout is what it was before
  StandardStreams(const StandardStreams&) = delete;

  // Writes out what is buffered. Returns why output was lost that somebody wanted to read, or "".
  std::string lost();

 private:
  static ssize_t write(void* self, const char* bytes, size_t count);
  void write_all(const char* bytes, size_t count);

  std::FILE *original_, *stream_;
  int error_ = 0;  // errno of the first failure
};

}  // namespace antichain
