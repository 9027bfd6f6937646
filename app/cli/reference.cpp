#include "app/cli/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "framework/error.h"
#include "framework/version.h"

namespace antichain {
namespace {

constexpr std::pair<const char*, const char*> of_the_program[] = {{"help", "list the options of a command"},
                                                                  {"version", "print the version"}};

// Calls `visit` with each command that has no others below it.
void for_each_command(const CommandHelp& program, const std::function<void(const CommandHelp&)>& visit) {
  for (const CommandHelp& command : program.commands) for_each_command(command, visit);
  if (program.commands.empty()) visit(program);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// An example without its heading, the line "Example".
std::string without_heading(const std::string& example) { return example.substr(example.find('\n') + 1); }

// Markdown

std::string in_cell(const std::string& text) { return replaced(text, "|", "\\|"); }

std::string markdown(const CommandHelp& program) {
  std::string text = fmt::format(
      "# The options of all commands\n\nThis page is made of the program: `{0} reference markdown` prints "
      "it, "
      "and `{0} COMMAND --help-all` prints one command's part. [The command line](command-line.md) says more "
      "about what the commands do.\n",
      program.words);
  for_each_command(program, [&](const CommandHelp& command) {
    text += fmt::format("\n## {}\n\n{}:\n\n```\n{}\n{}\n```\n", command.words, command.description,
                        usage_of(command), without_heading(command.example));
    std::string group;
    for (const OptionHelp& option : command.options) {
      if (option.group != group) text += fmt::format("\n| {} | |\n|---|---|\n", group = option.group);
      text += fmt::format("| `{}` | {} |\n", in_cell(option.head()), in_cell(option.text));
    }
  });
  return text;
}

// A page of man

// Returns a text that the formatter takes as it is.
std::string in_roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : std::string(1, text[i]);
      continue;
    }
    const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;  // bytes of UTF-8
    uint32_t point = c & (0x3F >> more);
    for (int k = 0; k < more && i + 1 < text.size(); ++k)
      point = point << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
    out += fmt::format("\\[u{:04X}]", point);
  }
  return out.starts_with(".") ? "\\&" + out : out;
}

std::string man_entry(const std::string& head, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", head, in_roff(text));
}

std::string man_page(const CommandHelp& program) {
  std::string upper = program.words, text;
  for (char& c : upper) c = char(std::toupper(static_cast<unsigned char>(c)));
  text =
      fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
                  upper, in_roff(program.words), version(), in_roff(program.words),
                  in_roff(program.description), in_roff(program.words), "COMMAND [OPTIONS]");
  text += ".SH COMMANDS\n";
  for_each_command(program, [&](const CommandHelp& command) {
    text += man_entry(fmt::format(".B {}", in_roff(command.words.substr(program.words.size() + 1))),
                      command.description);
  });
  for (const auto& [word, what] : of_the_program) text += man_entry(fmt::format(".B {}", word), what);
  for_each_command(program, [&](const CommandHelp& command) {
    text += fmt::format(".SH {}\n{}\n.PP\n.nf\n{}\n.fi\n", in_roff(command.words),
                        in_roff(command.description), in_roff(usage_of(command)));
    std::string group;
    for (const OptionHelp& option : command.options) {
      if (option.group != group) text += fmt::format(".SS {}\n", in_roff(group = option.group));
      text += man_entry(option.value.empty() ? fmt::format(".B {}", in_roff(option.names[0]))
                                             : fmt::format(".BI \"{} \" \"{}\"", in_roff(option.names[0]),
                                                           in_roff(option.value)),
                        option.text);
    }
    text += fmt::format(".SS Example\n.nf\n{}\n.fi\n", in_roff(without_heading(command.example)));
  });
  return text;
}

// The completion of bash

// Says how bash completes a value: -f by files, -d by folders, "" by neither.
std::string files_of(const std::string& value) {
  const auto has = [&](const char* word) { return value.find(word) != std::string::npos; };
  return has("FILE") || has("PATH") ? "-f" : has("DIR") || has("FOLDER") ? "-d" : "";
}

// Returns the assignments that say what may follow an option, or stand in a word's place.
std::string what_completes(const OptionHelp& option) {
  const std::string files = !option.is_word() ? files_of(option.value) : option.values.empty() ? "-f" : "";
  return (option.values.empty() ? "" : fmt::format(" names='{}'", fmt::join(option.values, " "))) +
         (files.empty() ? "" : " files=" + files);
}

// Returns the case of one command, and those of the commands below it. `path` is its words but for the
// program's name, with a blank before each.
std::string cases_of(const CommandHelp& command, const std::string& path) {
  std::string text, options, values, word;
  for (const OptionHelp& option : command.options) {
    if (option.is_word()) {
      word = what_completes(option);
      continue;
    }
    options += fmt::format(" {}", fmt::join(option.names, " "));
    if (!option.value.empty())
      values += fmt::format("        {}){} ;;\n", fmt::join(option.names, "|"), what_completes(option));
  }
  if (command.commands.empty())
    return fmt::format(
        "    '{}')\n      options='--help --help-all{}'\n      case $option in\n{}        *) "
        "option=''{} ;;\n      esac ;;\n",
        path, options, values, word);
  std::vector<std::string> names;
  for (const CommandHelp& below : command.commands) {
    names.push_back(below.words.substr(command.words.size() + 1));
    text += cases_of(below, path + " " + names.back());
  }
  if (path.empty())
    for (const auto& [name, what] : of_the_program) names.emplace_back(name);
  return fmt::format("    '{}') option='' options='--help{}' names='{}' ;;\n", path,
                     path.empty() ? " --version" : "", fmt::join(names, " ")) +
         text;
}

std::vector<std::string> paths_of(const CommandHelp& command, const std::string& path) {
  std::vector<std::string> paths;
  for (const CommandHelp& below : command.commands) {
    paths.push_back(path + below.words.substr(command.words.size()));
    for (std::string& more : paths_of(below, paths.back())) paths.push_back(std::move(more));
  }
  return paths;
}

// Bash parts words at '=' and ':', so the words are read from the line itself.
constexpr const char* completion =
    R"(# This completes command lines of @program@ in bash. @program@ reference bash prints it.
@function@() {
  local line=${COMP_LINE:0:COMP_POINT} command='' option='' options='' names='' files='' said
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local word=${words[-1]} value=${words[-1]}
  unset 'words[-1]'
  for said in "${words[@]:1}"; do
    case "$command $said" in
      @paths@) command+=" $said" ;;
    esac
  done
  if [[ $word == --*=* ]]; then
    option=${word%%=*} value=${word#*=}
  elif [[ ${words[-1]} == --* ]]; then
    option=${words[-1]}
  fi
  case $command in
@cases@  esac
  [[ $option || ( $word != -* && $names$files ) ]] || names=$options files=''
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$value"; [[ $files ]] && compgen "$files" -- "$value")
  [[ $files ]] && compopt -o filenames 2>/dev/null
  [[ $value == *:* && $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${value%:*}:"}")
}
complete -F @function@ @program@
)";

std::string bash(const CommandHelp& program) {
  std::string function = "_" + program.words;
  for (char& c : function)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  std::string text = replaced(completion, "@program@", program.words);
  text = replaced(text, "@function@", function);
  text = replaced(text, "@paths@", fmt::format("'{}'", fmt::join(paths_of(program, ""), "'|'")));
  return replaced(text, "@cases@", cases_of(program, ""));
}

struct WrittenForm {
  const char* name;
  std::string (*write)(const CommandHelp& program);
};
constexpr WrittenForm forms[] = {{"man", man_page}, {"markdown", markdown}, {"bash", bash}};

}  // namespace

std::vector<std::string> reference_forms() {
  std::vector<std::string> names;
  for (const WrittenForm& form : forms) names.emplace_back(form.name);
  return names;
}

std::string reference(const CommandHelp& program, const std::string& form) {
  const auto* found = std::ranges::find(forms, form, &WrittenForm::name);
  ANTICHAIN_CHECK(found != std::end(forms), "the command line has checked the form");
  return found->write(program);
}

}  // namespace antichain
