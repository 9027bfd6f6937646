#include "app/cli/run_folder.h"

#include <algorithm>

#include "framework/json.h"
#include "framework/paths.h"

namespace antichain {

bool is_file_of_run(const std::string& file, const std::string& folder) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return (name == "lock" || std::ranges::find(files_of_a_run, name) != files_of_a_run.end()) &&
         are_one(parent_of(file), folder);
}

nlohmann::ordered_json starts_of_run(const std::string& folder) {
  const std::string file = folder + "/run.json";
  if (!exists(file)) return {};
  const auto record = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
  return record.is_object() && record.contains("starts") && record["starts"].is_array()
             ? record["starts"]
             : nlohmann::ordered_json();
}

}  // namespace antichain
