// --results: a folder that holds what a training run was and what came of it, so that a number can be traced
// to a program, a command and a plan.
//
//   DIR/run.json        every start: command, program, git revision, libraries, ranks; all settings, defaults
//                       too
//   DIR/config.toml     the settings that were given, for --config
//   DIR/profile.json    DIR/plan.json    DIR/metrics.jsonl    DIR/summary.json
//   DIR/log.txt         what was printed
//   DIR/weights.h5      the weights at the end, as `export` writes them
//
// metrics.jsonl and summary.json are --metrics and --json, which may name other files.
#pragma once

#include <string>

#include "app/job/job_log.h"
#include "app/train/train_options.h"
#include "framework/files/folder_lock.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/stage/stage.h"

namespace antichain {

class RunRecord {
 public:
  // Collective: rank 0 makes and locks the folder, and keeps what is printed from then on. "": none. Error
  // when another run works in it.
  RunRecord(const std::string& folder, const Rank&);

  // On rank 0, before anything is measured. `checkpoint`: which it goes on from, or "". Error where the
  // folder holds the results of a finished run, and this one does not go on with it.
  void check_free(const std::string& checkpoint) const;
  // On rank 0, before the first step.
  void begin(const TrainCommandOptions&, const JobStart&, const std::string& checkpoint, const Profile&,
             const Plan&) const;
  // Collective, after the last step: the weights of all stages. Why they could not be written, or ""; on
  // every rank.
  std::string keep_weights(Stage&, Transport&) const;

 private:
  std::string folder_;
  FolderLock lock_;
};

// Where the weights and the log of a run are kept, or with which option they would be: a line of the log's
// beginning.
std::string describe_keeping(const TrainCommandOptions&);

// For run.json and config.toml, once the options are all filled in.
void note_settings(TrainCommandOptions&, CLI::App& command);

// --metrics and --json, where --results is given and they are not.
void complete_outputs(TrainCommandOptions&);

}  // namespace antichain
