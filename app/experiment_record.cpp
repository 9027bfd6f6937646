#include "app/experiment_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/version.h"
#include "pipeline/launch.h"
#include "pipeline/mpi_version.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
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

}  // namespace

Json provenance() {
  return {{"program", fmt::format("antichain {}", version())},
          {"revision", revision()},
          {"libraries", {backend("cpu").description(), mpi_version()}},
          {"host", host_name()},
          {"cores", available_cores()}};
}

std::string provenance_line() {
  return fmt::format("antichain {} (revision {}), {}, {}; {} with {} cores", version(), revision(),
                     backend("cpu").description(), mpi_version(), host_name(), available_cores());
}

ResultsFolder::ResultsFolder(const std::string& path, const std::string& experiment, const Json& settings,
                             const std::vector<std::string>& command)
    : path_(path), lock_(path) {
  const std::string record = path + "/experiment.json";
  if (fs::exists(record)) check_settings(settings, record, experiment);
  Json json = {{"experiment", experiment}, {"command", command}};
  json.update(provenance());
  json["settings"] = settings;
  write_file(record, json.dump(2) + "\n");
}

std::string ResultsFolder::file(const std::string& folder, const std::string& name) const {
  const fs::path inner = fs::path(path_) / folder;
  fs::create_directories(inner);
  return (inner / name).string();
}

std::vector<std::string> own_command() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace antichain
