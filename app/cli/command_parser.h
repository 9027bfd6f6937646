// A CommandParser is the parser of one subcommand, with the rows of its options.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "app/cli/option_row.h"

namespace antichain {

class CommandParser : public CLI::App {
 public:
  using CLI::App::App;
  std::vector<OptionRow> rows;
};

}  // namespace antichain
