// This file decides where a training run begins: from nothing, or from a checkpoint that belongs to it. A
// checkpoint that does not fit is refused before anything is computed.
#pragma once

#include <string>

#include "app/job/job.h"
#include "app/train/train_options.h"
#include "data/data_set.h"
#include "framework/files/checkpoint.h"
#include "framework/files/folder_lock.h"
#include "partition/plan/plan.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// RunFacts describe a run, for its checkpoints. Those of rank 0 count.
struct RunFacts {
  Facts model, recipe;  // a resumed run must have the same
  Facts usual;          // by the options' defaults
  Facts setting;        // may differ
  int64_t steps_per_epoch = 1, steps_per_evaluation = 1;
};
RunFacts run_facts(const TrainCommandOptions&, const DataSplits&, const Rank&);
// Adds how the run's plan divides the network, and which older weights its schedule reads. The plan may
// differ from the checkpoint's, but the bits depend on replicas.
void add_plan(Facts& setting, const Plan&, const Profile&, const Schedule&);

// Returns a hash of the images and labels: of all, or of some thousands evenly spread where there are more.
std::string fingerprint(const DataSet&);

struct Beginning {
  std::string checkpoint;  // path; "": from nothing
  Manifest manifest;       // the checkpoint's
  FolderLock lock;         // on rank 0: locks the folder that this run writes to

  int64_t step() const { return checkpoint.empty() ? 0 : manifest.position.step; }  // steps done
};

// Collective. Locks the folder for checkpoints, removes what interrupted writes left, and makes sure that all
// ranks share it. Finds the checkpoint to resume from, reads it as a whole and checks it; where the newest is
// damaged it takes an older one. Throws Error on every rank when the folder is in use or holds another run,
// or when the checkpoint does not belong to this run (it names each difference).
Beginning find_beginning(const TrainCommandOptions&, const RunFacts&, const Graph&, const Rank&);

// Each stage takes its state, whichever ranks had it before. Rank 0 says so, and warns where the checkpoint's
// plan had other replicas. Throws a usage Error on every rank where its backwards read other older weights.
void go_on_from(const Beginning&, const RunFacts&, RankModel&, const Rank&);

// Returns what the trainer needs to know about checkpoints.
CheckpointOptions checkpoint_options(const CheckpointCommandOptions&, const RunFacts&, const Beginning&);

}  // namespace antichain
