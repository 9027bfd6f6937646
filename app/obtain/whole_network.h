// A WholeNetwork is a network with the weights of a file. Commands that examine a network use the same
// runner, kernels and schedule as training. Ranks are replicas, which take the micro-batches in turn, each
// with the complete network; or each has a stage with about as many weights as the others, for a network that
// does not fit one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/job/job.h"
#include "framework/files/weights.h"
#include "framework/graph.h"
#include "framework/optimiser.h"
#include "pipeline/run/loss_means.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

enum class Ranks { replicas, stages };

// Return the node of the logits that the last loss is of, and their axis of classes.
NodeId logits_of(const Graph&);
int class_axis_of(const Graph&);

class WholeNetwork {
 public:
  // Collective. Mode train runs forward, backward and a step, on one rank; mode evaluate runs forward only.
  // Throws Error when the file does not fit the network, or there are more replicas than `microbatches`, or
  // more stages than nodes.
  WholeNetwork(const Graph& model, Precision, const std::string& weights_file, int microbatches, Mode mode,
               Rank& rank, const std::shared_ptr<const Optimiser>& = default_optimiser(),
               Ranks = Ranks::replicas);

  RankModel& stage() { return model_; }
  // Returns what is to be said of tensors in the file that the network has no use for.
  const std::vector<std::string>& skipped() const { return skipped_; }
  int class_axis() const { return class_axis_of(graph_); }  // of the output, which the last loss is of
  int64_t classes() const { return output()[class_axis()]; }
  Shape output() const { return graph_.shape(logits_of(graph_)); }  // of one micro-batch
  int microbatch() const { return graph_.microbatch(); }
  int batch() const { return microbatch() * microbatches_; }

  // Returns what the source's batch adds to what losses divide by, where they are no means over samples.
  LossMeans::Counts counts(BatchSource& source) const { return means_.counts(source, microbatches_); }
  // Has the losses of later runs, added up and divided by `samples`, be means over all that was counted.
  // Without it they are means over each run's batch.
  void take_means_over(const LossMeans::Counts& counts, double samples) {
    step_means_ = means_.means(counts, samples, batch());
  }

  // Runs one batch, of which the last samples only pad. With a rate of 0 the weights stay as they are. The
  // output is that of this rank's micro-batches; logits are samples first. Of stages only the last rank has
  // it.
  struct Output {
    StepResult sums;
    std::vector<float> logits;
  };
  Output run(BatchSource&, float rate = 0, int padding = 0);
  // Has `look` called with each node's output of every later run: float32, in host memory and plain layout.
  using Look = std::function<void(const Node&, const Tensor& y)>;
  void set_look(Look look) { look_ = std::move(look); }
  // Returns whether the whole output is finite.
  static bool finite(const Output&);
  // Runs the batch again and returns "the output of node layer1.0.conv1 is not finite" for the first such
  // node.
  std::string describe_first_bad(BatchSource&);

 private:
  Plan even_stages(int stages) const;

  const Graph graph_;
  const int microbatches_;
  const Profile profile_;
  const Plan plan_;
  const Schedule schedule_;
  const Seat seat_;
  RankModel model_;
  StageRunner runner_;
  const LossMeans means_;
  const std::vector<std::string> skipped_;
  std::optional<StepMeans> step_means_;
  Look look_;
};

}  // namespace antichain
