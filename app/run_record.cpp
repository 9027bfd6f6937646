#include "app/run_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/error.h"
#include "framework/json.h"
#include "partition/plan.h"
#include "pipeline/agree.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// "batch 64\nlr 0.3" as an object; flags are true.
Json said(const std::string& settings) {
  Json json = Json::object();
  std::istringstream in(settings);
  for (std::string line; std::getline(in, line);) {
    const size_t blank = line.find(' ');
    json[line.substr(0, blank)] = blank == std::string::npos ? "true" : line.substr(blank + 1);
  }
  return json;
}

// Starts that stand there already.
Json earlier(const std::string& file) {
  if (!fs::exists(file)) return Json::array();
  const Json before = Json::parse(read_file(file), nullptr, false);
  return before.is_object() && before.contains("starts") && before["starts"].is_array() ? before["starts"]
                                                                                        : Json::array();
}

}  // namespace

RunRecord::RunRecord(const std::string& folder, const Rank& rank) : folder_(folder) {
  if (folder.empty()) return;
  on_rank_zero(rank.transport, [&] {
    lock_ = FolderLock(folder);
    return "";
  });
}

void RunRecord::check_free(const std::string& checkpoint) const {
  if (!folder_.empty() && checkpoint.empty() && fs::exists(folder_ + "/summary.json"))
    throw Error(folder_ + " holds the results of a run that has ended",
                "name another folder with --results, or go on with that run with --resume", ExitCode::usage);
}

void RunRecord::begin(const TrainCommandOptions& options, const JobStart& job, const std::string& checkpoint,
                      const Profile& profile, const Plan& plan) const {
  if (folder_.empty()) return;
  const std::string file = folder_ + "/run.json";
  Json starts = checkpoint.empty() ? Json::array() : earlier(file);
  Json start = to_json(job);
  start["from"] = checkpoint.empty() ? "the beginning" : checkpoint;
  start["plan_hash"] = plan_hash(plan);
  starts.push_back(std::move(start));
  const Json json = {{"model", options.network.model},
                     {"seed", options.seed},
                     {"settings", said(options.settings)},
                     {"starts", std::move(starts)}};
  write_file(file, json.dump(2) + "\n");
  write_file(folder_ + "/profile.json", to_json(profile));
  write_file(folder_ + "/plan.json", to_json(plan, profile));
}

void complete_outputs(TrainCommandOptions& options) {
  if (options.results.empty()) return;
  if (options.metrics_file.empty()) options.metrics_file = options.results + "/metrics.jsonl";
  if (options.json_file.empty()) options.json_file = options.results + "/summary.json";
}

}  // namespace antichain
