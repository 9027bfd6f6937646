// A user names a file for a result; this file decides where the result goes.
//
//   a plain file     is replaced as a whole or not at all
//   -, /dev/stdout   is standard output, so that the result can be piped; all other text goes to standard
//                    error then
//   a pipe, device   is written to: --trace /dev/null, --metrics >(jq .loss)
#pragma once

#include <cstdio>
#include <string>

#include "framework/file_handle.h"

namespace antichain {

// Returns whether the name is one of the last two.
bool is_stream(const std::string& file);

// Keeps standard output for that option's result where `file` names it: tables and progress go to standard
// error from then on, and so does what libraries print. Throws Error when another option has it already.
void keep_standard_output(const std::string& option, const std::string& file);
void free_standard_output();

// For --quiet: everything printed and every note (framework/say.h) are dropped until the answer begins. Logs
// keep them.
void be_quiet();
// From here on the program prints what the user asked the command for. --quiet does not drop it, unless
// standard output is kept for a file.
void begin_answer();

// Returns the descriptor that tables and progress go to, or -1: nowhere.
int printing_descriptor();

// Writes the text; "" is no file. Throws Error naming the file, but not when a stream's reader has gone.
void write_output(const std::string& file, const std::string& text);

// An OutputStream writes a result to a stream, part by part.
class OutputStream {
 public:
  explicit OutputStream(const std::string& file);
  void write(const std::string& text) const;

 private:
  std::string file_;
  FileHandle descriptor_;
};

// StandardStreams handles the three standard streams in whatever state the program gets them: closed, a pipe
// whose reader has gone or pauses, a full disk. No such state may change what a run computes.
//
//   closed         /dev/null takes its place, so that no file of ours gets its number and what is printed
//   reader gone    further output is dropped: `antichain info | head` has read what it wanted
//   full           output is dropped too, and the program says so once, at its end
//   reader pauses  printing waits for it, and the watchdog knows that
//
// Standard error has its rules in framework/say.h.
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
