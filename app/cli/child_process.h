// A child process: an experiment's real runs, gnuplot and dot. What ends it ends nothing else, and when this
// process is told to stop, or dies, the child goes too.
#pragma once

#include <string>
#include <vector>

namespace antichain {

// While one exists, SIGINT, SIGTERM and SIGUSR1 only set a flag, and the first two are passed on to a child
// that is running.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  static bool requested();
  // What ends work that nothing is saved of: Error naming the signal, code 128 + its number; nothing where
  // there was none.
  static void end_if_requested();

 private:
  struct Saved;
  Saved* saved_;
};

// Whether the program is found in PATH, or at the path given.
bool has_program(const std::string& name);
// This program itself.
std::string own_program();

// Runs words[0], looked up in PATH, and waits. Both outputs go to `log_file`, anew. Returns the exit code;
// 128 + n when it died of signal n, 127 when it could not be started.
int run_child(const std::vector<std::string>& words, const std::string& log_file);

// The last line of such a file that says something, for error messages; "" when there is none.
std::string last_line(const std::string& log_file);
// The same of a program of ours, by mpirun or not: its own last sentence, else the first paragraph of
// mpirun's last page.
std::string last_words(const std::string& log_file);

}  // namespace antichain
