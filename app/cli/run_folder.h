// These are the files that `antichain train` keeps in the folder of --results, besides its lock.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

namespace antichain {

inline constexpr std::array files_of_a_run = {"run.json",   "config.toml",    "profile.json",
                                              "plan.json",  "metrics.jsonl",  "log.txt",
                                              "weights.h5", "weights-ema.h5", "summary.json"};

// Returns whether a file has one of these names, or the lock's, in the folder.
bool is_file_of_run(const std::string& file, const std::string& folder);

// Returns the starts of its run that a folder lists, or null where it has no record of one.
nlohmann::ordered_json starts_of_run(const std::string& folder);
inline bool is_run_folder(const std::string& folder) { return !starts_of_run(folder).is_null(); }

}  // namespace antichain
