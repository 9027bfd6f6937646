// Where a training run begins: from nothing, or from a checkpoint that belongs to it. Found out, and refused
// where it does not fit, before anything is computed.
#pragma once

#include <string>

#include "app/job/job.h"
#include "app/train/train_options.h"
#include "data/data_set.h"
#include "framework/files/checkpoint.h"
#include "framework/files/folder_lock.h"
#include "partition/plan/plan.h"

namespace antichain {

// What a run is, for its checkpoints. Rank 0's counts.
struct RunFacts {
  Facts model, recipe;  // a run that goes on must have the same
  Facts setting;        // may differ
  int64_t steps_per_epoch = 1;
};
RunFacts run_facts(const TrainCommandOptions&, const DataSplits&, const Rank&);
// How the run's plan divides the network, which it may otherwise than its checkpoint's; the bits depend on
// replicas.
void add_plan(Facts& setting, const Plan&, const Profile&);

// A fingerprint of the images and labels: of all, or of some thousands evenly spread where there are more.
std::string fingerprint(const DataSet&);

struct Beginning {
  std::string checkpoint;  // path; "": from nothing
  Manifest manifest;       // of it
  FolderLock lock;         // on rank 0: that of the folder this run writes to

  int64_t step() const { return checkpoint.empty() ? 0 : manifest.position.step; }  // done
};

// Collective. Locks the folder for checkpoints, clears it of what torn attempts left, and makes sure that all
// ranks share it; finds the checkpoint to resume from, which is read and checked as a whole, an older one
// where the newest is damaged. Error on every rank when the folder is in use, holds another run, or the
// checkpoint does not belong to this run (each difference is named).
Beginning find_beginning(const TrainCommandOptions&, const RunFacts&, const Graph&, const Rank&);

// Each stage takes its state, on whichever ranks it was; rank 0 says so, and warns where the checkpoint's
// plan had other replicas.
void go_on_from(const Beginning&, const RunFacts&, Stage&, const Rank&);

// What the trainer needs to know about it.
CheckpointOptions checkpoint_options(const CheckpointCommandOptions&, const RunFacts&, const Beginning&);

}  // namespace antichain
