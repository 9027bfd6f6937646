// antichain reference prints all commands with all their options, for man, for bash, or as Markdown.
#include <CLI/CLI.hpp>

#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/reference.h"
#include "app/options/options.h"
#include "pipeline/host/launch.h"

namespace antichain {

void add_reference(CLI::App& app) {
  struct ReferenceOptions {
    std::string form, file = "-";
  };
  auto options = std::make_shared<ReferenceOptions>();
  CLI::App& command =
      add_command(app, "reference", "print all commands and options, for man, a reader or bash",
                  "antichain reference bash --out ~/.local/share/bash-completion/completions/antichain");
  add_option(command, "Printed", "FORM NAME", options->form, one_of("form", reference_forms()),
             "man: a page for man; markdown: a page for a reader; bash: the completion of command lines")
      ->required();
  add_output_option(command, "--out", options->file, "the file to write [standard output]");
  command.callback([options, &app] {
    check_writable({options->file});
    if (rank_hint() == 0) write_output(options->file, reference(help_of(app), options->form));
  });
}

}  // namespace antichain
