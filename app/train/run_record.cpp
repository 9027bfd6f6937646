#include "app/train/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "app/cli/overwriting.h"
#include "app/cli/run_folder.h"
#include "app/train/run_settings.h"
#include "framework/error.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "framework/new_file.h"
#include "framework/paths.h"
#include "framework/say.h"
#include "partition/plan/plan.h"
#include "pipeline/run/shard_exchange.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

// A run that ended has its weights, even where its summary was moved elsewhere.
bool has_ended(const std::string& folder) {
  return std::ranges::any_of(std::array{"summary.json", "weights.h5", "weights-ema.h5"},
                             [&](const char* name) { return exists(folder + "/" + name); });
}

// Returns a setting that changes numbers and is another one in the folder's run, or "". Flags and what was
// not given can be said in several ways.
std::string difference_from(const std::string& folder, const TrainCommandOptions& options) {
  const Json there = parse_json(read_file(folder + "/run.json"), folder).value("settings", Json::object()),
             here = Json::parse(options.in_force);
  if (!there.is_object()) return "";
  for (const OptionRow& row : options.rows) {
    if (row.changes.kind != OptionKind::network && row.changes.kind != OptionKind::recipe) continue;
    const std::string option = row.setting();
    const Json before = there.value(option, Json()), now = here.value(option, Json());
    if (!before.is_null() && !now.is_null() && !now.is_boolean() && before != now)
      return fmt::format("--{} was {} there and is {} here", option, before.dump(), now.dump());
  }
  return "";
}

// Refuses a folder that has files of our names but no record of a run.
void refuse_foreign_files(const std::string& folder) {
  if (is_run_folder(folder)) return;
  for (const char* name : files_of_a_run)
    if (exists(folder + "/" + name) || is_link(folder + "/" + name))
      throw Error(
          fmt::format("{} has a file {} that is of no run of antichain, and would be replaced", folder, name),
          "name another folder with --results", ExitCode::usage);
}

}  // namespace

RunRecord::RunRecord(const std::string& folder, const Rank& rank) : folder_(folder) {
  if (folder.empty()) return;
  on_rank_zero(rank.job, [&] {
    lock_ = FolderLock(folder);
    remove_abandoned(folder, files_of_a_run);
    keep_what_is_printed();
    return "";
  });
}

void RunRecord::check_free(const TrainCommandOptions& options, const std::string& checkpoint) const {
  if (folder_.empty()) return;
  refuse_foreign_files(folder_);
  if (!has_ended(folder_)) return;
  if (checkpoint.empty())
    throw Error(folder_ + " holds the results of a run that has ended",
                "name another folder with --results, or go on with that run with --resume", ExitCode::usage);
  if (const std::string difference = difference_from(folder_, options); !difference.empty())
    throw Error(fmt::format("{} holds the results of another run that has ended: {}", folder_, difference),
                "name another folder with --results", ExitCode::usage);
}

void RunRecord::begin(const TrainCommandOptions& options, const JobStart& job, const std::string& checkpoint,
                      const Profile& profile, const Plan& plan) const {
  if (folder_.empty()) return;
  Json starts = checkpoint.empty() ? Json() : starts_of_run(folder_);
  if (starts.is_null()) starts = Json::array();
  Json start = to_json(job);
  start["from"] = checkpoint.empty() ? "the beginning" : checkpoint;
  start["plan_hash"] = plan_hash(plan);
  starts.push_back(std::move(start));
  const Json json = {{"model", options.network.model},
                     {"seed", options.seed},
                     {"settings", Json::parse(options.in_force)},
                     {"starts", std::move(starts)}};
  write_file(folder_ + "/run.json", json.dump(2) + "\n");
  write_file(folder_ + "/config.toml", options.given);
  write_what_is_printed(folder_ + "/log.txt", !checkpoint.empty());
  write_file(folder_ + "/profile.json", to_json(profile));
  keep_plan(profile, plan);
}

void RunRecord::keep_plan(const Profile& profile, const Plan& plan) const {
  if (!folder_.empty()) write_file(folder_ + "/plan.json", to_json(plan, profile));
}

std::string RunRecord::keep_weights(RankModel& model, Transport& transport) const {
  Job& job = transport.job();
  if (folder_.empty()) return "";
  const Progress::Disk disk(job.activity(), "writing the weights to " + folder_);
  const auto keep = [&](const char* name) {
    const Weights weights = gather_weights(model, job);
    return on_rank_zero(job, [&]() -> std::string {
      try {
        write_weights(folder_ + "/" + name, weights, WeightFormat::hdf5);
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    });
  };
  std::string lost = keep("weights.h5");
  if (!swap_averages(model, transport)) return lost;
  const std::string averages_lost = keep("weights-ema.h5");
  swap_averages(model, transport);
  return lost.empty() ? averages_lost : lost;
}

std::string describe_keeping(const TrainCommandOptions& o) {
  const std::string &results = o.results, &checkpoints = o.checkpoint.folder;
  if (results.empty() && checkpoints.empty())
    return log_line("Keeping",
                    "nothing: the weights are lost when the run ends; --results DIR keeps them and the log, "
                    "--checkpoint DIR all that it takes to go on");
  std::vector<std::string> kept;
  if (!results.empty()) kept.push_back(fmt::format("weights and log in {} at the end", results));
  if (!checkpoints.empty())
    kept.push_back(fmt::format("checkpoints in {} {}at the end", checkpoints,
                               o.checkpoint.every.empty() ? "" : "every " + o.checkpoint.every + " and "));
  return log_line("Keeping", fmt::format("{}", fmt::join(kept, ", ")));
}

void note_settings(TrainCommandOptions& o, const CLI::App& command) {
  if (o.results.empty()) return;
  Json all = settings_in_force(command);
  all["warmup-steps"] = o.recipe_warmup_steps > 0 ? o.recipe_warmup_steps : o.rate.warmup_steps;
  all["warmup-epochs"] = o.warmup_epochs;
  if (o.course_epochs > 0) all["epochs of the rate's course"] = o.course_epochs;
  o.in_force = all.dump(), o.given = given_as_toml(command);
}

namespace {

std::vector<std::string> with_kept(const std::string& given, const std::string& results, const char* name) {
  std::vector<std::string> files;
  if (!given.empty()) files.push_back(given);
  if (!results.empty() && (given.empty() || !are_one(given, results + "/" + name)))
    files.push_back(results + "/" + name);
  return files;
}

}  // namespace

std::vector<std::string> metrics_files(const TrainCommandOptions& options) {
  return with_kept(options.metrics_file, options.results, "metrics.jsonl");
}

std::vector<std::string> summary_files(const TrainCommandOptions& options) {
  return with_kept(options.json_file, options.results, "summary.json");
}

void check_results_are_kept(const TrainCommandOptions& options) {
  if (options.results.empty()) return;
  check_no_output_is("which --results writes", [&](const std::string& file, const std::string& option) {
    const std::string name = file.substr(file.rfind('/') + 1);
    const bool its_own =
        (option == "--metrics" && name == "metrics.jsonl") || (option == "--json" && name == "summary.json");
    return !its_own && is_file_of_run(file, options.results);
  });
}

}  // namespace antichain
