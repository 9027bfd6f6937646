// Runs another program and waits for it. There is no shell between, so nothing needs quoting.
#pragma once

#include <string>
#include <vector>

namespace antichain {

struct CommandResult {
  int status = 127;    // exit status; 127 when the program isn't there; 128 + n when signal n ended it
  std::string output;  // standard output
};

// Discards standard error.
CommandResult run_command(const std::vector<std::string>& words);

}  // namespace antichain
