// What each option of `antichain train` changes. From this table a checkpoint's manifest says what a run that
// goes on must have alike, and an option without a row ends the program: none that changes numbers can be
// forgotten.
#pragma once

#include <span>
#include <string>

#include "app/cli/cli_forward.h"
#include "app/train/train_options.h"

namespace antichain {

enum class OptionKind {
  network,    // numbers, as part of the network: a run that goes on must have the same
  recipe,     // numbers, as part of how it is trained: the same
  data,       // numbers: compared by what the data hold, wherever they are
  last_bits,  // how sums are rounded: another is warned of
  // From where and how far a run goes, and what it does in trouble: may change, and what follows is said.
  extent,
  speed,   // how fast it runs, and no bit
  output,  // which files are written or read, and what is printed
};
const char* name_of(OptionKind);

struct TrainOption {
  const char* name;  // "lr", without dashes
  OptionKind kind;
  // Of network and recipe: its name and value in a manifest, the names being those that all versions wrote.
  // None where another fact says it.
  const char* fact = "";
  std::string (*value)(const TrainCommandOptions&, int64_t batches_per_epoch) = nullptr;
  // Where a version wrote manifests without it: its default then.
  const char* default_before = "";
};

std::span<const TrainOption> train_option_kinds();

// Throws Error naming an option of the command that the table lacks, or a row that is no option's.
void check_train_option_kinds(const CLI::App& train);

}  // namespace antichain
