#include "app/obtain/whole_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/job/preflight.h"
#include "framework/error.h"
#include "layers/softmax_cross_entropy.h"
#include "pipeline/run/finite.h"
#include "pipeline/run/plain_copy.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

Graph lowered_for(const Rank& rank, const Graph& model, Precision precision, Mode mode) {
  if (mode == Mode::train && rank.job.size() > 1)
    throw Error("this command runs on one rank", "start it without mpirun and --local", ExitCode::usage);
  return lower(model, rank.context.backend(), precision);
}

// Throws Error before anything is allocated.
Schedule fitting_schedule(const Graph& graph, const Optimiser& optimiser, const Profile& profile,
                          const Plan& plan, int microbatches, Mode mode, Rank& rank) {
  const Policy policy = mode == Mode::train ? Policy::one_f_one_b : Policy::forward_only;
  Schedule schedule = make_schedule(profile, plan, policy, microbatches);
  check_available_memory(rank.job, MemoryOf::whole_network,
                         step_need(graph, optimiser, profile, plan, schedule, rank.job.rank(), mode),
                         device_memory(rank.context));
  return schedule;
}

}  // namespace

WholeNetwork::WholeNetwork(const Graph& model, Precision precision, const std::string& weights_file,
                           int microbatches, Mode mode, Rank& rank,
                           const std::shared_ptr<const Optimiser>& optimiser, Ranks ranks)
    : graph_(lowered_for(rank, model, precision, mode)),
      microbatches_(microbatches),
      profile_(unpriced(graph_, rank.context.backend().description())),
      plan_(ranks == Ranks::stages ? even_stages(rank.job.size()) : one_stage(profile_, rank.job.size())),
      schedule_(fitting_schedule(graph_, *optimiser, profile_, plan_, microbatches, mode, rank)),
      seat_(seat_of(plan_, rank.job.rank(), microbatches)),
      model_(graph_, nodes_of_rank(plan_, rank.job.rank()), rank.context, 0, optimiser),
      runner_(model_, profile_, plan_, schedule_, mode, rank.job),
      means_(graph_, model_.nodes()),
      skipped_(load_weights(model_, broadcast_weights(weights_file, graph_, rank.job), Fit::whole,
                            weights_file)) {}

Plan WholeNetwork::even_stages(int stages) const {
  Plan plan = one_stage(profile_);
  const std::vector<NodeId> nodes = std::move(plan.stages[0].nodes);
  if (stages > std::ssize(nodes))
    throw Error(fmt::format("{} ranks are more than the network has nodes, {}", stages, nodes.size()),
                "start fewer", ExitCode::usage);
  const auto bytes_of = [&](NodeId id) { return param_bytes(graph_[id]) + param_bytes(graph_[id], false); };
  int64_t all = 0, before = 0;
  for (const NodeId id : nodes) all += bytes_of(id);
  plan.stages.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto stage = std::ssize(plan.stages);  // the next one
    const bool due = before * stages >= all * stage,
               needed = std::ssize(nodes) - int64_t(i) <= stages - stage;
    if (stage < stages && (stage == 0 || due || needed)) plan.stages.emplace_back().ranks = {int(stage)};
    plan.stages.back().nodes.push_back(nodes[i]);
    before += bytes_of(nodes[i]);
  }
  plan.method = "even stages";
  return plan;
}

NodeId logits_of(const Graph& graph) {
  NodeId loss = graph.size() - 1;
  while (loss >= 0 && graph[loss].role() != Role::loss) --loss;
  ANTICHAIN_CHECK(loss >= 0, "every model has a loss");
  return graph[loss].inputs[0];
}

int class_axis_of(const Graph& graph) {
  const NodeId logits = logits_of(graph);
  for (const NodeId consumer : graph.consumers(logits)) {
    const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(graph[consumer].op.get());
    if (loss && loss->options.classes_last) return graph.shape(logits).rank() - 1;
  }
  return 1;
}

WholeNetwork::Output WholeNetwork::run(BatchSource& source, float rate, int padding) {
  Output output;
  const NodeId logits = logits_of(graph_);
  output.logits.resize(size_t(seat_.count() * this->output().elements()));
  runner_.set_watch([&, logits](NodeId id, int m, const Tensor& y) {
    if (id != logits && !look_) return;
    const Tensor plain = plain_on_host(model_.context(), y);
    if (look_) look_(graph_[id], plain);
    if (id != logits) return;
    const int nth = m / seat_.replicas;
    std::copy_n(plain.data<float>(), plain.elements(), output.logits.begin() + nth * plain.elements());
  });
  output.sums = runner_.run(
      {.batch = batch(),
       .rate = rate,
       .padding = padding,
       .means = step_means_ ? *step_means_ : means_.means_of_batch(source, microbatches_, batch())},
      source);
  return output;
}

bool WholeNetwork::finite(const Output& output) {
  return std::isfinite(output.sums.loss) && all_finite(output.logits.data(), int64_t(output.logits.size()));
}

std::string WholeNetwork::describe_first_bad(BatchSource& source) {
  std::optional<std::pair<int, NodeId>> first;
  runner_.set_watch([&](NodeId id, int m, const Tensor& y) {
    const std::pair place(m, id);
    if ((!first || place < *first) && !all_finite(model_.context(), y)) first = place;
  });
  runner_.run({.batch = batch(), .rate = 0}, source);
  return first ? fmt::format("the output of node {} is not finite", graph_[first->second].name)
               : "the loss is not finite";
}

}  // namespace antichain
