// These checks keep a slip from costing a file: they refuse two outputs of one name, and an output over a
// file that the same command reads or keeps, however the two names are spelt.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"

namespace antichain {

// Throws a usage Error naming the two options. The options of the group Output that name files are outputs,
// and so is --checkpoint; all others that name files or folders are read. It throws one as well where an
// output lies in a checkpoint or has a name that a run keeps in that folder for itself. JSON and files of
// arrays may not replace a file that begins otherwise.
void check_nothing_is_overwritten(const CLI::App& command);

// Commands call this for files that no option names: those of a data set's folder, say. Throws a usage Error
// where an output of the command that was parsed last is one of them; `what` says which: "a file of the data
// set".
void check_no_output_is(const std::string& what,
                        const std::function<bool(const std::string& file, const std::string& option)>& is);
void check_no_output_is(const std::string& what, const std::vector<std::string>& files);

// Throws a usage Error where a file that is to be written is there already and is nothing of `kind`, which
// `read` finds out by throwing an Error.
void check_replaces_only(const std::string& kind, const std::string& file, const std::function<void()>& read);

}  // namespace antichain
