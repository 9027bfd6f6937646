// This table says what each option of `antichain train` changes. From it a checkpoint's manifest knows which
// settings a resumed run must share. An option without a row ends the program, so none that changes numbers
// can be forgotten.
#pragma once

#include <span>
#include <string>

#include "app/cli/cli_forward.h"
#include "app/train/train_options.h"

namespace antichain {

enum class OptionKind {
  network,    // changes numbers, as part of the network: a resumed run must have the same
  recipe,     // changes numbers, as part of the training: a resumed run must have the same
  data,       // changes numbers: compared by the data's content, wherever they are
  last_bits,  // changes how sums are rounded: a different value causes a warning
  // Sets where a run begins and ends, and how it handles failures. It may change, and the program says what
  // follows from that.
  extent,
  speed,   // changes the speed, and no bit
  output,  // selects files to write or read, and what is printed
};
const char* name_of(OptionKind);

struct TrainOption {
  const char* name;  // "lr", without dashes
  OptionKind kind;
  // For network and recipe: the option's name and value in a manifest, under names that all versions wrote.
  // Empty where another fact covers the option.
  const char* fact = "";
  std::string (*value)(const TrainCommandOptions&, int64_t batches_per_epoch) = nullptr;
  // The default of versions that wrote manifests without this fact.
  const char* default_before = "";
};

std::span<const TrainOption> train_option_kinds();

// Throws Error naming an option of the command that the table lacks, or a row that is no option's.
void check_train_option_kinds(const CLI::App& train);

}  // namespace antichain
