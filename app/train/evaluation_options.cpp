#include "app/train/evaluation_options.h"

#include <CLI/CLI.hpp>

#include "app/cli/checks.h"
#include "framework/error.h"

namespace antichain {

void add_evaluation_options(CLI::App& app, EvaluationOptions& o) {
  CLI::Option* every = app.add_option("--evaluate-every", o.every,
                                      "evaluate over the test set after each N steps [after each epoch]");
  check_whole(every, 1, 1'000'000'000)->type_name("N")->group("Training");
  CLI::Option* patience = app.add_option(
      "--patience", o.patience,
      "end the run when N evaluations in a row are not better than the best before them: a higher accuracy, "
      "or the same and a smaller loss [never]");
  check_whole(patience, 1, 1'000'000)->type_name("N")->group("Training");
  app.add_flag("--keep-best", o.keep_best,
               "keep the checkpoint of the best evaluation, too, in the folder best beside the others")
      ->group("Checkpoints");
}

void check(const EvaluationOptions& o, bool has_checkpoints) {
  if (o.keep_best && !has_checkpoints)
    throw Error("--keep-best needs a folder for checkpoints", "add --checkpoint DIR", ExitCode::usage);
}

}  // namespace antichain
