#include "app/report/measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/loss_mean.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {
namespace {

bool is_mean_of_logarithms(const Op& op) {
  const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(&op);
  return loss && loss->options.label_smoothing == 0 && loss->options.class_weights.empty() &&
         loss->options.reduction == Reduction::mean;
}

}  // namespace

std::string_view samples_of(const Profile& profile) {
  const bool text = std::ranges::any_of(profile.nodes, [](const ProfileNode& node) {
    return node.role == Role::input && node.name == "tokens";
  });
  return samples_of(Measures{.tokens = text});
}

std::string_view samples_of(const Measures& measures) { return measures.tokens > 0 ? "sequences" : "images"; }

Measures measures_of(const Graph& graph) {
  Measures measures{.hits = has_hits(graph)};
  const NodeId tokens = graph.find("tokens");
  if (tokens < 0 || graph[tokens].role() != Role::input) return measures;
  measures.tokens = graph.shape(tokens).elements() / graph.microbatch();
  measures.perplexity = is_mean_of_logarithms(*graph[graph.size() - 1].op);
  return measures;
}

ComputeRate compute_rate(const Profile& profile, int microbatches) {
  double flops = 0;
  for (const ProfileNode& node : profile.nodes) flops += node.cost.flops;
  ComputeRate rate{.step_flops = 3 * flops * microbatches};
  for (const ProfileNode& node : profile.nodes)
    if (node.cost.flops >= flops / 100 && node.cost.forward_s > 0)
      rate.best_per_s = std::max(rate.best_per_s, node.cost.flops / node.cost.forward_s);
  return rate;
}

double perplexity(double loss) { return std::exp(loss); }

std::string and_perplexity(double loss, const Measures& measures) {
  if (!measures.perplexity) return "";
  const double value = perplexity(loss);
  return value < 1e4 ? fmt::format(", perplexity {:.2f}", value) : fmt::format(", perplexity {:.3g}", value);
}

}  // namespace antichain
