// The speedup study: every model by every method on so many ranks, predicted, rehearsed or measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/experiment/experiment_cell.h"
#include "app/experiment/experiment_networks.h"
#include "app/job/experiment_record.h"
#include "app/options/options.h"
#include "app/options/planning_options.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct SpeedupOptions {
  // What it is of.
  std::vector<std::string> models, methods;
  std::vector<int> ranks;
  StudyMode mode = StudyMode::simulate;
  std::string profiles;  // a folder; "": measured
  // A step, and what it is planned for.
  int microbatches = default_microbatches, microbatch = 8;  // samples in one: of what is measured here
  Policy policy = Policy::one_f_one_b;
  std::string objective = default_objective;
  double link_bytes_per_s = -1, link_latency_s = -1;  // negative: as the profile says
  int64_t memory_bytes = 0;
  // How ranks are started: "mpirun -n {}"; "": as threads.
  std::string launcher;
  // What computes, in training and in profiles measured here: device, threads, precision.
  MachineOptions machine;
  std::string precision = "float32";
  // Rehearsing.
  double time_scale = 0;  // 0: comfortable
  std::string payload = "token";
  int steps = 3;
  // Measuring.
  int epochs = 1, train_steps = 0;
  int64_t seed = 0;
  std::string dataset = "cifar10", data_dir;
};

// One model's prices and link, and what each cell of it is planned for.
struct StudyNetwork {
  Profile profile;
  std::string profile_file;
};
StudyNetwork study_network(const SpeedupOptions&, const ResultsFolder&, const std::string& model, int ranks);
PlanOptions plan_options(const SpeedupOptions&, const Profile&, const StudyMethod&, int ranks);

// All cells, those that were finished before included, in the order of models, ranks, methods. Each is kept
// as it is finished. Error when it was stopped, or when a child process failed: then the cells that are
// finished stay, and the same command goes on.
struct Sweep {
  std::vector<Cell> cells;
  std::vector<std::string> failures;  // of child processes: a sentence each
};
Sweep sweep(const SpeedupOptions&, const ResultsFolder&, const std::function<void(const std::string&)>& say);

}  // namespace antichain
