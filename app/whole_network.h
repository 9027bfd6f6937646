// A network on one rank, with the weights of a file: what looks at a network instead of training it runs it by the same
// runner, kernels and schedule as training does.
#pragma once

#include <string>

#include "app/job.h"
#include "framework/graph.h"
#include "framework/weights.h"
#include "pipeline/runner.h"

namespace antichain {

class WholeNetwork {
 public:
  // `mode` train: forward, backward and a step; evaluate: forward only. Error when the job has several ranks, or the
  // file does not fit the network.
  WholeNetwork(const Graph& model, const std::string& weights_file, int microbatches, Mode mode, Rank& rank);

  Stage& stage() { return stage_; }
  int64_t classes() const;
  int batch() const { return graph_.microbatch() * microbatches_; }

  // Runs one batch. The step's rate is 0, so weights stay as they are. Logits: batch x K.
  struct Output {
    StepResult sums;
    std::vector<float> logits;
  };
  Output run(BatchSource&);

 private:
  NodeId logits_node() const;
  Plan one_stage() const;

  const Graph graph_;
  const int microbatches_;
  const Profile network_;
  const Plan plan_;
  const Schedule schedule_;
  Stage stage_;
  StageRunner runner_;
};

}  // namespace antichain
