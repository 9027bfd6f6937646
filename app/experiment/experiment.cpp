// antichain experiment runs the studies of the paper, each by one command.
#include "app/cli/commands.h"

#include <CLI/CLI.hpp>

#include "app/experiment/experiment_commands.h"

namespace antichain {

void add_experiment(CLI::App& app) {
  CLI::App& experiment =
      *app.add_subcommand("experiment", "the paper's tables and figures, from one command each");
  experiment.footer(
      "Example\n  antichain experiment table1 --profiles profiles\n"
      "  antichain experiment speedup --profiles profiles --ranks 4,8 --out study");
  experiment.require_subcommand(1);
  add_experiment_table1(experiment);
  add_experiment_speedup(experiment);
}

}  // namespace antichain
