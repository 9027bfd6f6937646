// This file records how results were made, and manages the folder that holds them. So a figure can be traced
// to a program and a command, and no folder mixes two experiments.
//
//   OUT/experiment.json   command, version, git revision, libraries, host, settings
//   OUT/cells/*.json      finished cells       OUT/plans, OUT/logs, OUT/profiles, OUT/figures
//   OUT/report.md, .html
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/files/folder_lock.h"

namespace antichain {

// Returns program, revision, libraries, host and cores.
nlohmann::ordered_json provenance();
// Returns them in one line, for reports.
std::string provenance_line();

class ResultsFolder {
 public:
  // Makes the folder where there is none, and locks it. Throws Error when another experiment uses it, or when
  // it holds results of other settings, naming the first difference. Throws a usage Error where mpirun
  // started several processes.
  ResultsFolder(const std::string& path, const std::string& experiment,
                const nlohmann::ordered_json& settings, const std::vector<std::string>& command);
  const std::string& path() const { return path_; }
  std::string file(const std::string& folder, const std::string& name) const;  // makes the inner folder

 private:
  std::string path_;
  FolderLock lock_;
};

// Returns the words that this process was started with.
std::vector<std::string> own_command();
// Returns the words as they would be typed in a shell.
std::string shell_words(const std::vector<std::string>&);

}  // namespace antichain
