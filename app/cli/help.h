// This file formats --help within 80 columns. Groups come in the order in which their options were declared,
// with Output last, and defaults stand in brackets. docs/cli.md is made of it.
#pragma once

#include <memory>

#include "app/cli/cli_forward.h"

namespace antichain {

// Returns the formatter for CLI::App::formatter(). Set it before subcommands are added, because they inherit
// it.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace antichain
