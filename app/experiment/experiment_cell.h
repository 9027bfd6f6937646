// A Cell is one entry of an experiment: one model, planned by one method, on a number of ranks, in one mode,
// and its results. A finished cell is a file, so that an interrupted sweep can continue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/plan/method.h"
#include "partition/planners/planner.h"

namespace antichain {

// A StudyMethod is a planner's method, and whether the method chooses replicas.
struct StudyMethod {
  std::string name;  // "antichain", "antichain+replicas"
  Method planner;
  enum class Kind { straight, replicated, data_parallel } kind = Kind::straight;
};
const std::vector<StudyMethod>& study_methods();
const StudyMethod& study_method(const std::string& name);  // usage Error when there is none

enum class StudyMode { simulate, rehearse, measure };
StudyMode study_mode(const std::string& name);  // "simulate"
std::string name_of(StudyMode);
std::string participle(StudyMode);  // "simulated"

struct CellKey {
  std::string model, method;
  int ranks = 1;
  StudyMode mode = StudyMode::simulate;
  std::string name() const;  // name of its files: "resnet101-antichain-8-simulate"
};

struct StepFigures {
  double step_s = 0, bubble_fraction = 0;
  std::vector<double> busy_s;  // per rank: forward, backward and update
};

struct TrainedFigures {
  double step_s = 0;
  int64_t steps = 0;
  std::string data;                              // the training data
  std::optional<double> test_accuracy;           // none where no epoch ended
  std::vector<std::pair<int64_t, double>> loss;  // by step, thinned out
  double starved_share = 0;                      // see app/report/time_report.h; 0 in older cells
};

struct Cell {
  CellKey key;
  std::string refusal;  // why there is no plan, or why it can't run; then nothing below is filled in
  int microbatch = 0, microbatches = 0;
  std::string plan_hash, stages;  // "8", or with replicas "3+5x1"
  double planning_s = 0, one_device_s = 0, slowest_s = 0, imbalance = 1, time_scale = 1;
  int64_t boundary_bytes = 0, memory_bytes = 0;
  StepFigures predicted;
  std::optional<StepFigures> rehearsed;  // also rehearsed where it is measured, with the same plan and costs
  std::optional<TrainedFigures> measured;

  double step_s() const;              // in the cell's own mode
  const StepFigures& shares() const;  // how the time divides: rehearsed in that mode, else predicted
};

// Returns whether a rank lacked a core for so long that its measured times are doubtful
// (pipeline/host/starved_time.h).
bool starved(const Cell&);

std::string to_json(const Cell&);
// Throws the Errors of JsonReader.
Cell cell_from_json(const std::string& text, const std::string& origin);

// Returns the measured one-rank cell that a measured cell is compared with: that of the same method, else of
// any other (on one rank all methods do the same). Returns null where the study has none.
const Cell* one_rank_of(const std::vector<Cell>&, const Cell&);
// Returns the speedup over that cell's measured step, else over the predicted step of one rank.
double speedup(const std::vector<Cell>&, const Cell&);

}  // namespace antichain
