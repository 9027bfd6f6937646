// The metrics file has one JSON object a line, for scripts. Steps have step, loss and images_per_s;
// evaluations have epoch and test_accuracy; the last line sums up the run. Where the network reads tokens,
// steps have tokens_per_s, too, and evaluations test_perplexity; those of pixels and of numbers have
// test_mean_iou and test_mean_absolute_error. Steps and epochs count from 1.
// Every line names the data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/output_file.h"
#include "app/report/measures.h"
#include "app/report/output_errors.h"
#include "framework/new_file.h"
#include "pipeline/train/trainer.h"

namespace antichain {

class MetricsFile {
 public:
  // Writes to all of the files. When training resumes with an existing one, its lines up to `step` remain.
  // Lines of later steps, of evaluations that are made again, and of the end are removed. Throws Error when a
  // file can't be opened, or is no metrics file.
  MetricsFile(const std::vector<std::string>& files, std::string data, const Measures&, int64_t step = 0);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  void step(const StepReport&);
  void evaluation(const EvaluationReport&, const std::vector<OutputErrors::Mean>&);
  void summary(const std::string& json);  // a JSON object in one line
  // Returns why a file lacks lines at its end, or "". Until then lines that a full disk does not take wait
  // for the next one, after a warning.
  std::string lost();

 private:
  void write(const std::string& text);
  struct Sink {
    std::string file;
    std::unique_ptr<GrowingFile> growing;
    std::unique_ptr<OutputStream> stream;  // in its place where the file is one
  };
  std::string data_;
  const Measures measures_;
  std::vector<Sink> sinks_;
  bool warned_ = false, asked_ = false;
};

}  // namespace antichain
