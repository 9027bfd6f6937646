// A RunRecord is the folder of --results. It holds the run's settings and results, so that a number can be
// traced to a program, a command and a plan.
//
//   DIR/run.json        every start: command, program, git revision, libraries, ranks; all settings,
//                       including defaults
//   DIR/config.toml     the settings that were given, for --config
//   DIR/profile.json    DIR/plan.json    DIR/metrics.jsonl    DIR/summary.json
//   DIR/log.txt         what was printed
//   DIR/weights.h5      the weights at the end, as `export` writes them
//
// metrics.jsonl and summary.json are what --metrics and --json write, which may name further files.
#pragma once

#include <string>
#include <vector>

#include "app/job/job_log.h"
#include "app/train/train_options.h"
#include "framework/files/folder_lock.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/stage/rank_model.h"

namespace antichain {

class RunRecord {
 public:
  // Collective: rank 0 makes and locks the folder, and from then on keeps what is printed. "" is no folder.
  // Throws Error when another run uses it.
  RunRecord(const std::string& folder, const Rank&);

  // Rank 0 calls this before anything is measured. `checkpoint` is the one that the run resumes from, or "".
  // Throws Error where the folder holds the results of a finished run that this one does not resume.
  void check_free(const TrainCommandOptions&, const std::string& checkpoint) const;
  // Rank 0 calls this before the first step.
  void begin(const TrainCommandOptions&, const JobStart&, const std::string& checkpoint, const Profile&,
             const Plan&) const;
  // Rank 0 calls this when the run goes on by another plan than it began with.
  void keep_plan(const Profile&, const Plan&) const;
  // Collective, after the last step. Writes the weights of all stages. Returns why they could not be written,
  // or "", on every rank.
  std::string keep_weights(RankModel&, Transport&) const;

 private:
  std::string folder_;
  FolderLock lock_;
};

// Returns a line for the beginning of the log: where the weights and the log are kept, or with which option
// they would be.
std::string describe_keeping(const TrainCommandOptions&);

// Stores the settings for run.json and config.toml, once all options have their values.
void note_settings(TrainCommandOptions&, const CLI::App& command);

// Return the files that --metrics and --json name, and those of --results.
std::vector<std::string> metrics_files(const TrainCommandOptions&);
std::vector<std::string> summary_files(const TrainCommandOptions&);

// Throws a usage Error where another option's output is a file of --results.
void check_results_are_kept(const TrainCommandOptions&);

}  // namespace antichain
