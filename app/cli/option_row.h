// An option is one row: its name and what its value is called, the variable that it sets, what it accepts,
// its help, and what it changes in a training run. The parser, --help, settings files, the comparison of
// ranks, and what a run and its checkpoints say of themselves are all made of the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/cli_forward.h"

namespace antichain {

// An OptionVariable is where the value goes. Rows refer to it, so it has to outlive the command.
struct OptionVariable {
  OptionVariable(std::string&);
  OptionVariable(int&);
  OptionVariable(int64_t&);
  OptionVariable(uint64_t&);
  OptionVariable(float&);
  OptionVariable(double&);
  OptionVariable(std::optional<double>&);
  OptionVariable(bool&);                      // of a flag
  OptionVariable(std::vector<std::string>&);  // of a list: commas, and the option given again, add to it
  OptionVariable(std::function<void(const std::string&)> set, std::function<std::string()> text);

  std::function<void(const std::string&)> set;  // from a text that was accepted
  std::function<std::string()> text;            // the value with all its digits; "": none
  bool* flag = nullptr;
  bool many = false;  // a list, whose text has commas
};

// An OptionKind says what another value of an option changes in a training run. A checkpoint's manifest has
// the facts of the kinds network and recipe, and a resumed run must share them.
enum class OptionKind {
  unsaid,     // train has no such option
  network,    // changes numbers, as part of the network
  recipe,     // changes numbers, as part of the training
  data,       // changes numbers: compared by the data's content, wherever they are
  last_bits,  // changes how sums are rounded: a different value causes a warning
  // Sets where a run begins and ends, and how it handles failures. It may change, and the program says what
  // follows from that.
  extent,
  speed,   // changes the speed, and no bit
  output,  // selects files to write or read, and what is printed
};
const char* name_of(OptionKind);

struct Changes {
  OptionKind kind = OptionKind::unsaid;
  const char* fact = "";                    // its name in manifests; "": another fact covers the option
  std::function<std::string()> value = {};  // where the fact is not the variable's text
};

struct OptionRow {
  // "--batch N" with what the value is called; a flag, "--grey" or "--flip,!--no-flip"; or "A PATH", a word
  // that stands without an option's name.
  std::string name;
  OptionVariable variable;
  Accepts accepts;
  std::string help;  // a default in brackets at its end is shown in place of the variable's
  Changes changes = {};
  std::string usual_fact = {};  // the fact's value before anything is read
  bool matters = true;          // --help shows it; --help-all shows the others, too

  std::string parser_name() const;  // "--flip,!--no-flip"
  std::string option_name() const;  // "--flip"
  std::string setting() const;      // "flip"
  std::string value_name() const;   // "N"; "" of a flag
  std::string fact() const;         // the fact's value, now
};

// Gives a row to the parser, and keeps it where the command is one of add_command()'s.
CLI::Option* add_option(CLI::App& command, const std::string& group, std::string name, OptionVariable,
                        Accepts, std::string help, Changes = {});

// Adds several options of a group.
struct OptionGroup {
  OptionGroup(CLI::App& command, std::string name) : command_(command), name_(std::move(name)) {}
  CLI::Option* operator()(std::string name, OptionVariable variable, Accepts accepts, std::string help,
                          Changes changes = {}) const {
    return add_option(command_, name_, std::move(name), std::move(variable), std::move(accepts),
                      std::move(help), std::move(changes));
  }

 private:
  CLI::App& command_;
  std::string name_;
};
// Returns the rows of a command of add_command().
const std::vector<OptionRow>& rows_of(const CLI::App& command);

// Has --help show these options alone, the dozen that matter most; --help-all shows all.
void show_first(CLI::App& command, const std::vector<std::string>& options);

}  // namespace antichain
