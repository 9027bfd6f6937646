// The metrics file: one JSON object a line, for scripts. Steps have step, loss and images_per_s; epochs have epoch and
// test_accuracy; the last line sums up the run. Every line names the data.
#pragma once

#include <fstream>
#include <string>

#include "pipeline/trainer.h"

namespace antichain {

class MetricsFile {
 public:
  // "": writes nothing. Error when the file can't be opened.
  MetricsFile(const std::string& file, std::string data);
  void step(const StepReport&);
  void epoch(const EpochReport&);
  void summary(double predicted_step_s, double measured_step_s, int64_t steps, const std::string& state);

 private:
  void line(const std::string& text);
  std::string file_, data_;
  std::ofstream out_;
};

}  // namespace antichain
