// antichain rehearse runs a step on real ranks that wait for profiled times instead of computing.
#pragma once

#include <string>

#include "app/options/options.h"
#include "app/options/planning_options.h"

namespace antichain {

struct RehearseCommandOptions {
  PlanningOptions planning;
  ScheduleOptions schedule;
  MachineOptions machine;
  int microbatches = default_microbatches, steps = 3;
  int width = 0;                  // of the grid; 0: the terminal's
  double time_scale = 0;          // 0: comfortable_time_scale()
  std::string payload = "token";  // or "true"
  std::string json_file, trace_file;
  std::string model, precision;  // that train was given, and the profile must have; "" and 0: not given
  int batch = 0;
};

// Plans, rehearses, and prints predicted beside rehearsed times. Without --local and mpirun it starts as many
// threads as the plan has ranks.
void rehearse(const RehearseCommandOptions&);

// Recognises `--device rehearse:PROFILE` of train: everything but the device is as in training.
bool is_rehearsal(const std::string& device);
RehearseCommandOptions rehearsal_of(const MachineOptions&, const PlanningOptions&, const ScheduleOptions&,
                                    int microbatches);

}  // namespace antichain
