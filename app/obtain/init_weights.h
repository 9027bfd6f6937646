// --init and --init-partial start a network from a file's weights and say which of them it did not take.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "framework/files/state_dict.h"
#include "pipeline/stage/rank_model.h"

namespace antichain {

struct InitOptions {
  std::string whole_file, partial_file;  // at most one

  const std::string& file() const { return partial_file.empty() ? whole_file : partial_file; }
  Fit fit() const { return partial_file.empty() ? Fit::whole : Fit::partial; }
};
void add_init_options(CLI::App&, InitOptions&, const std::string& group);

// Returns the name of weights.safetensors in a folder NAME.antichain that has it, else "". A graph.json that
// is named itself brings no weights.
std::string weights_of_folder(const std::string& graph);
// Collective. Returns the options. Where they name no file, and the network comes from a folder in which rank
// 0 finds weights, they name these.
InitOptions with_weights_of(const std::string& graph, InitOptions, Job&);

// Prints a line for each.
void print_skipped(const std::vector<std::string>& sentences);

// Collective. Rank 0 reads the file. Throws Error on every rank when it does not fit the network. Returns
// nothing where no file is given.
Weights read_initial(const InitOptions&, const Graph&, Job&);
// Each stage takes its own tensors, and rank 0 prints what was skipped.
void start_from(const Weights&, const InitOptions&, RankModel&, const Rank&);

}  // namespace antichain
