#include "app/cli/overwriting.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/output_file.h"
#include "framework/error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

struct NamedFile {
  std::string option, file;
  bool written = false;
};

std::vector<NamedFile> named_files(const CLI::App& command) {
  std::vector<NamedFile> files;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty() ||
        option->get_type_name().find("FILE") == std::string::npos)
      continue;
    const std::string name = "--" + option->get_lnames().front(), file = option->results().back();
    const bool written = option->get_group() == "Output" && name != "--config";
    if (!file.empty() && !(written && is_stream(file))) files.push_back({name, file, written});
  }
  return files;
}

bool are_one(const std::string& a, const std::string& b) {
  std::error_code not_there;
  return fs::path(a).lexically_normal() == fs::path(b).lexically_normal() || fs::equivalent(a, b, not_there);
}

}  // namespace

void check_nothing_is_overwritten(const CLI::App& command) {
  const std::vector<NamedFile> files = named_files(command);
  for (size_t i = 0; i < files.size(); ++i)
    for (size_t j = 0; j < files.size(); ++j) {
      const NamedFile &one = files[i], &other = files[j];
      if (i == j || !one.written || !are_one(one.file, other.file)) continue;
      throw Error(
          other.written
              ? fmt::format("{} and {} would be written to one file, {}", one.option, other.option, one.file)
              : fmt::format("{} would replace {}, which {} reads", one.option, one.file, other.option),
          "name another file", ExitCode::usage);
    }
}

}  // namespace antichain
