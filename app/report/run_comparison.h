// This file sets two training runs side by side, from what `train --results` left of them. It tells what was
// set differently, and whether the numbers are the same, step by step and bit by bit. A run that has not
// ended is compared as far as it has come.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace antichain {

struct FinishedRun {
  std::string folder;
  nlohmann::json settings;         // by option
  nlohmann::json start;            // the last one: program, revision, libraries, ranks, plan_hash
  nlohmann::json summary;          // what train --json writes; empty where the run has not ended
  std::map<int64_t, double> loss;  // by step, from 1; NaN where it was no number
};
// Throws Error where the folder holds no run, or one of its files is damaged.
FinishedRun read_run(const std::string& folder);

class RunComparison {
 public:
  RunComparison(FinishedRun a, FinishedRun b);

  // Returns whether losses in all steps, and the final weights and statistics, are equal.
  bool equal() const;
  std::string verdict() const;  // a sentence
  std::string str() const;      // tables: settings that differ, losses, times, states
  std::string json() const;

 private:
  struct Line {
    std::string name, a, b;
  };
  std::vector<Line> settings() const;  // those that differ
  std::vector<Line> results() const;
  bool same_states() const;
  std::string settings_table() const;

  FinishedRun a_, b_;
  int64_t common_ = 0;           // number of steps in both
  int64_t first_different_ = 0;  // the first such step; 0: none
  double largest_ = 0;           // of two losses of a step
};

}  // namespace antichain
