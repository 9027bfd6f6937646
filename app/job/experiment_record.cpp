#include "app/job/experiment_record.h"

#include <fmt/format.h>

#include <fstream>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"
#include "framework/version.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/mpi_library.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

void check_settings(const Json& now, const std::string& file, const std::string& experiment) {
  const nlohmann::json before = parse_json(read_file(file), file);
  if (!before.is_object() || before.value("experiment", "") != experiment || !before.contains("settings") ||
      !before["settings"].is_object())
    throw Error(fmt::format("{} is not of an experiment called {}", file, experiment), "give another --out",
                ExitCode::usage);
  for (const auto& [name, value] : now.items()) {
    const nlohmann::json was = before["settings"].value(name, nlohmann::json());
    if (was != nlohmann::json(value))
      throw Error(fmt::format("{} holds results of other settings: {} was {}, and is {} now", file, name,
                              was.dump(), value.dump()),
                  "give another --out, or the settings it was begun with", ExitCode::usage);
  }
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?[]{}#~`!") == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// An experiment that ended before its first result may start again with other settings.
bool holds_results(const std::string& path) {
  const auto any_in = [](const std::string& folder) { return exists(folder) && !names_in(folder).empty(); };
  return exists(path + "/report.md") || any_in(path + "/cells") || any_in(path + "/profiles");
}

const std::string& of_one_process(const std::string& path) {
  if (launched_in_parallel())
    throw Error("an experiment starts its ranks itself, but several processes of it were started",
                "start it without mpirun or srun; --launcher says how ranks are started", ExitCode::usage);
  return path;
}

}  // namespace

Json provenance() {
  return {{"program", fmt::format("antichain {}", version())},
          {"revision", revision()},
          {"libraries", {backend("cpu").description(), mpi_library()}},
          {"host", host_name()},
          {"cores", available_cores()}};
}

std::string provenance_line() {
  return fmt::format("antichain {} (revision {}), {}, {}; {} with {} cores", version(), revision(),
                     backend("cpu").description(), mpi_library(), host_name(), available_cores());
}

ResultsFolder::ResultsFolder(const std::string& path, const std::string& experiment, const Json& settings,
                             const std::vector<std::string>& command)
    : path_(of_one_process(path)), lock_(path) {
  const std::string record = path + "/experiment.json";
  if (exists(record) && holds_results(path)) check_settings(settings, record, experiment);
  Json json = {{"experiment", experiment}, {"command", command}};
  json.update(provenance());
  json["settings"] = settings;
  write_file(record, json.dump(2) + "\n");
}

std::string ResultsFolder::file(const std::string& folder, const std::string& name) const {
  const std::string inner = path_ + "/" + folder;
  make_folders(inner);
  return inner + "/" + name;
}

std::vector<std::string> own_command() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

}  // namespace antichain
