// The text of --help: groups in the order in which their options were declared and Output last, defaults in
// brackets, within 80 columns; docs/cli.md is made of it.
#pragma once

#include <memory>

#include "app/cli/cli_forward.h"

namespace antichain {

// For CLI::App::formatter, before subcommands are added (they inherit it).
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace antichain
