// --results: a folder that holds what a training run was and what came of it, so that a number can be traced to a program, a
// command and a plan.
//
//   DIR/run.json        every start: command, program, git revision, libraries, ranks; model, seed, all that was said
//   DIR/profile.json    DIR/plan.json    DIR/metrics.jsonl    DIR/summary.json
//
// The last two are --metrics and --json, which may name other files.
#pragma once

#include <string>

#include "app/job_log.h"
#include "app/train_options.h"
#include "framework/folder_lock.h"
#include "pipeline/simulate.h"

namespace antichain {

class RunRecord {
 public:
  // Collective: rank 0 makes and locks the folder. "": none. Error when another run works in it.
  RunRecord(const std::string& folder, const Rank&);

  // On rank 0, before anything is measured. `checkpoint`: which it goes on from, or "". Error where the folder holds the
  // results of a finished run, and this one does not go on with it.
  void check_free(const std::string& checkpoint) const;
  // On rank 0, before the first step.
  void begin(const TrainCommandOptions&, const JobStart&, const std::string& checkpoint, const Profile&,
             const Plan&) const;

 private:
  std::string folder_;
  FolderLock lock_;
};

// --metrics and --json, where --results is given and they are not.
void complete_outputs(TrainCommandOptions&);

}  // namespace antichain
