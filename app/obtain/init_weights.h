// --init and --init-partial: a network that starts from a file's weights, and says what it did not take.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "framework/files/state_dict.h"
#include "pipeline/stage/stage.h"

namespace antichain {

struct InitOptions {
  std::string whole_file, partial_file;  // at most one

  const std::string& file() const { return partial_file.empty() ? whole_file : partial_file; }
  Fit fit() const { return partial_file.empty() ? Fit::whole : Fit::partial; }
};
void add_init_options(CLI::App&, InitOptions&, const std::string& group);

// A line for each.
void print_skipped(const std::vector<std::string>& sentences);

// Collective. Rank 0 reads the file; Error on every rank when it does not fit the network. Nothing where none
// is given.
Weights read_initial(const InitOptions&, const Graph&, Transport&);
// Each stage takes its own tensors; rank 0 prints what was skipped.
void start_from(const Weights&, const InitOptions&, Stage&, const Rank&);

}  // namespace antichain
