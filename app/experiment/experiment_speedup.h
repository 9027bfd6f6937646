// The speedup study covers every model by every method on given numbers of ranks, predicted, rehearsed or
// measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/experiment/experiment_cell.h"
#include "app/experiment/experiment_networks.h"
#include "app/job/experiment_record.h"
#include "app/options/options.h"
#include "app/options/planning_options.h"
#include "pipeline/planning/schedule_choice.h"

namespace antichain {

struct SpeedupOptions {
  // These are the axes of the study.
  std::vector<std::string> models, methods;
  OwnNetwork own;  // one of the models, or none
  std::vector<int> ranks;
  StudyMode mode = StudyMode::simulate;
  std::string profiles;  // a folder; "": profiles are measured
  // These describe a step and what it is planned for.
  int microbatches = default_microbatches, microbatch = 8;  // the latter in samples, for measuring
  ScheduleChoice schedule;
  int chunks = 0;  // stages a rank; 0: as many as the schedule has
  Objective objective = default_objective;
  Steps steps_of_ranks = Steps::overlapped;
  double link_bytes_per_s = -1, link_latency_s = -1;  // negative: as the profile says
  int64_t memory_bytes = 0;
  // How ranks are started: "mpirun -n {}"; "": as threads.
  std::string launcher;
  // The device, threads and precision, for training and for profiles measured here.
  MachineOptions machine;
  std::string precision = "float32";
  // For rehearsals.
  double time_scale = 0;  // 0: comfortable
  std::string payload = "token";
  int steps = 3;
  // For training.
  int epochs = 1, train_steps = 0;
  int64_t seed = 0;
  std::string dataset = "cifar10", data_dir;
};

// A StudyNetwork has one model's costs and link, and what each of its cells is planned for.
struct StudyNetwork {
  Profile profile;
  std::string profile_file;
};
StudyNetwork study_network(const SpeedupOptions&, const ResultsFolder&, const std::string& model, int ranks);
PlanOptions plan_options(const SpeedupOptions&, const Profile&, const StudyMethod&, int ranks);

// A cell's order of --schedule auto is a file beside its plan, with this ending.
constexpr const char* planned_schedule_ending = ".schedule";

// Fills all cells, in the order of models, ranks, methods. It keeps each cell when it is finished, and takes
// those that were finished before. Throws Error when it was stopped or a child process failed. Finished cells
// then stay, and the same command continues.
struct Sweep {
  std::vector<Cell> cells;
  std::vector<std::string> failures;  // those of child processes: a sentence each
};
Sweep sweep(const SpeedupOptions&, const ResultsFolder&, const std::function<void(const std::string&)>& say);

}  // namespace antichain
