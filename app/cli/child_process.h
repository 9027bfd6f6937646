// This file runs child processes: an experiment's real runs, gnuplot and dot. A child's failure ends nothing
// else. When this process is told to stop, or dies, the child ends too.
#pragma once

#include <string>
#include <vector>

namespace antichain {

// While a StopSignals exists, SIGINT, SIGTERM and SIGUSR1 only set a flag. The first two are also forwarded
// to a running child.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  static bool requested();
  // Ends work that has nothing to save: throws an Error naming the signal, with code 128 + its number. It
  // does nothing where there was no signal.
  static void end_if_requested();

 private:
  struct Saved;
  Saved* saved_;
};

// Returns whether the program is found in PATH, or at the path given.
bool has_program(const std::string& name);
// Returns the path of this program.
std::string own_program();

// Runs words[0], looked up in PATH, and waits. Both outputs replace the content of `log_file`. Returns the
// exit code; 128 + n when the child died of signal n, 127 when it could not be started.
int run_child(const std::vector<std::string>& words, const std::string& log_file);

// Returns the last non-empty line of such a file, for error messages; "" when there is none.
std::string last_line(const std::string& log_file);
// Returns the same for a program of ours, with or without mpirun: its own last sentence, else the first
// paragraph of mpirun's last message.
std::string last_words(const std::string& log_file);

}  // namespace antichain
