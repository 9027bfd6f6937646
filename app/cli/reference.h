// A reference lists all commands with all their options, in a form that another program shows: man, a reader
// of Markdown, or bash, which completes words.
#pragma once

#include <string>
#include <vector>

#include "app/cli/help.h"

namespace antichain {

std::vector<std::string> reference_forms();  // "man", "markdown", "bash"
std::string reference(const CommandHelp& program, const std::string& form);

}  // namespace antichain
