// A CommandHelp lists what a command does and what each of its options is for. It is made of the rows of the
// options (app/cli/option_row.h). --help is printed from it within 80 columns, and so are the man page, the
// page of all options and the completion of a shell (app/cli/reference.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"

namespace antichain {

struct OptionHelp {
  std::vector<std::string> names;  // "--flip" and "--no-flip"; "A" of a word without an option's name
  std::string value;               // what its value is called; "": it is a flag, or such a word
  std::string group;
  std::string text;                 // with the default in brackets
  std::vector<std::string> values;  // names among its values
  bool matters = true;              // --help shows it; --help-all shows the others, too

  bool is_word() const { return !names[0].starts_with("--"); }
  std::string head() const { return value.empty() ? names[0] : names[0] + " " + value; }  // "--batch N"
};

struct CommandHelp {
  std::string words;  // "antichain data pack"
  std::string description, example;
  std::vector<OptionHelp> options;    // by group, in the order of declaration, with Output last
  std::vector<CommandHelp> commands;  // below it; then it has no options
};

// Another program that calls run() (app/run.h) shows its own name in all texts.
CommandHelp help_of(const CLI::App&);

// Returns "antichain data pack".
std::string words_of(const CLI::App&);
// Returns "antichain compare A B [OPTIONS]".
std::string usage_of(const CommandHelp&);

// Returns the formatter for CLI::App::formatter(). Set it before subcommands are added, because they inherit
// it.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace antichain
