// The metrics file has one JSON object a line, for scripts. Steps have step, loss and images_per_s;
// evaluations have epoch and test_accuracy; the last line sums up the run. Steps and epochs count from 1.
// Every line names the data.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "app/cli/output_file.h"
#include "pipeline/train/trainer.h"

namespace antichain {

class MetricsFile {
 public:
  // "" writes nothing. When training resumes with an existing file, the lines up to `step` remain. Lines of
  // later steps, of evaluations that are made again, and of the end are removed. Throws Error when the file
  // can't be opened, or is no metrics file.
  MetricsFile(const std::string& file, std::string data, int64_t step = 0);
  void step(const StepReport&);
  void evaluation(const EvaluationReport&);
  void summary(const std::string& json);  // a JSON object in one line

 private:
  void write(const std::string& text);
  std::string file_, data_;
  std::ofstream out_;
  std::optional<OutputStream> stream_;  // used instead of out_ where the file is a stream
};

}  // namespace antichain
