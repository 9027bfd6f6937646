// Error is the one error type of the whole library: a sentence that says what is wrong, where, and what to
// do.
//
// Libraries throw `Error`. `main` catches it once, prints the sentence once for the whole job and ends every
// rank with `code()`. Internal invariants use ANTICHAIN_CHECK, which adds the expression and its place.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace antichain {

// These process exit codes are documented in docs/command-line.md and stable for scripts.
enum class ExitCode : int {
  ok = 0,
  failure = 1,        // an internal invariant broke: a bug
  usage = 2,          // unknown option, model, method, …
  bad_input = 3,      // a file or a value that can't be used
  peer_failed = 4,    // another rank or thread ended the job
  out_of_memory = 5,  // a plan or a run needs more memory than there is
  not_a_number = 6,   // the loss or a gradient is infinite or not a number
  watchdog = 75,      // a rank made no progress within the limit
  stopped = 85,       // ended by a signal or by --max-time, with everything saved: resume
};

class Error : public std::runtime_error {
 public:
  // `sentence` says what is wrong and where; `hint` says what to do, or is "". Both are made printable
  // (framework/printable.h).
  explicit Error(std::string sentence, std::string hint = {}, ExitCode code = ExitCode::bad_input);

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws an Error (ExitCode::failure) that quotes the failed expression and its place.
[[noreturn]] void check_failed(const char* expression, const std::string& why,
                               std::source_location where = std::source_location::current());

}  // namespace antichain

// Checks an invariant of our own code. Bad user input throws Error with a hint instead.
#define ANTICHAIN_CHECK(expression, why) \
  ((expression) ? void(0) : ::antichain::check_failed(#expression, (why)))
