#include "app/train/evaluation_options.h"

#include "app/cli/option_row.h"
#include "framework/error.h"

namespace antichain {

void add_evaluation_options(CLI::App& app, EvaluationOptions& o) {
  using enum OptionKind;
  const OptionGroup add(app, "Training");
  add("--evaluate-every N", o.every, whole_between(1, 1'000'000'000),
      "evaluate over the test set after each N steps [after each epoch]",
      {recipe, "steps between evaluations"});  // 0: those of an epoch
  add("--patience N", o.patience, whole_between(1, 1'000'000),
      "end the run when N evaluations in a row are not better than the best before them: a higher accuracy, "
      "or the same and a smaller loss [never]",
      {extent});
  add_option(app, "Checkpoints", "--keep-best", o.keep_best, {},
             "keep the checkpoint of the best evaluation, too, in the folder best beside the others",
             {output});
}

void check(const EvaluationOptions& o, bool has_checkpoints) {
  if (o.keep_best && !has_checkpoints)
    throw Error("--keep-best needs a folder for checkpoints", "add --checkpoint DIR", ExitCode::usage);
}

}  // namespace antichain
