// What crosses a cut, and where in a rank's list it goes.
//
// An edge from stage a to stage b is "tensor of node n, micro-batch m", sent straight to b, next to a or not,
// so that skip connections need no relays; to the rank of b whose turn micro-batch m is, where b has
// replicas. Gradients come back the same way, folded as far as promise and order allow.
#include <algorithm>
#include <functional>

#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

using Consumers = std::vector<std::vector<int>>;

std::vector<FoldTerm> fold(const Consumers& consumers, const std::vector<int>& stage_of, int tensor) {
  std::vector<int> order = consumers[tensor];
  std::sort(order.begin(), order.end(), std::greater<>());
  std::vector<FoldTerm> terms;
  bool leading = true;  // whether all terms so far are one remote stage's run that starts the fold
  for (int consumer : order) {
    const int stage = stage_of[consumer];
    leading = leading && stage != stage_of[tensor] && (terms.empty() || terms[0].stage == stage);
    if (leading && !terms.empty())
      terms[0].message.consumer = consumer;
    else
      terms.push_back({stage, {Flow::gradient, tensor, consumer}});
  }
  return terms;
}

// The stages that use a node's output, besides its own; ascending, each once.
std::vector<int> receivers(const std::vector<int>& consumers, const std::vector<int>& stage_of, int own) {
  std::vector<int> stages;
  for (int consumer : consumers)
    if (stage_of[consumer] != own) stages.push_back(stage_of[consumer]);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

void add_routes(Cut& cut, const Profile& network, const std::vector<int>& stage_of) {
  const Consumers consumers = network.consumers();
  std::vector<int> crossing;  // nodes, ascending
  for (int n = 0; n < int(network.nodes.size()); ++n) {
    if (network.nodes[n].role == Role::input) continue;
    const std::vector<int> stages = receivers(consumers[n], stage_of, stage_of[n]);
    for (int to : stages) cut.activations.push_back({{Flow::activation, n, -1}, stage_of[n], to});
    if (!stages.empty() && network.nodes[n].needs_gradient) crossing.push_back(n);
  }
  for (auto n = crossing.rbegin(); n != crossing.rend(); ++n)
    for (const FoldTerm& term : fold(consumers, stage_of, *n))
      if (term.stage != stage_of[*n]) cut.gradients.push_back({term.message, term.stage, stage_of[*n]});
}

std::vector<bool> loading_stages(const Profile& network, const Plan& plan) {
  std::vector<bool> loads;
  const auto is_input = [&](int n) { return network.nodes[n].role == Role::input; };
  for (const PlanStage& stage : plan.stages)
    loads.push_back(std::any_of(stage.nodes.begin(), stage.nodes.end(), [&](int n) {
      const auto& inputs = network.nodes[n].inputs;
      return std::any_of(inputs.begin(), inputs.end(), is_input);
    }));
  return loads;
}

// What one stage sends or receives of a flow.
std::vector<Route> touching(const std::vector<Route>& routes, int Route::*end, int stage) {
  std::vector<Route> found;
  std::copy_if(routes.begin(), routes.end(), std::back_inserter(found),
               [&](const Route& route) { return route.*end == stage; });
  return found;
}

}  // namespace

std::vector<FoldTerm> gradient_fold(const Profile& network, const std::vector<int>& stage_of, int tensor) {
  const ProfileNode& node = network.nodes.at(tensor);
  if (!node.needs_gradient || node.role == Role::input) return {};
  return fold(network.consumers(), stage_of, tensor);
}

Cut cut_of(const Profile& network, const Plan& plan) {
  Cut cut{.loads = loading_stages(network, plan)};
  add_routes(cut, network, plan.stage_of(int(network.nodes.size())));
  for (const PlanStage& stage : plan.stages) cut.ranks.push_back(stage.ranks);
  return cut;
}

std::vector<Action> add_messages(const std::vector<Action>& compute, const Cut& cut, const Share& share) {
  struct Messages {
    std::vector<Route> in, out;
    size_t size() const { return in.size() + out.size(); }
  };
  const auto of = [&](const std::vector<Route>& routes) -> Messages {
    return {touching(routes, &Route::to_stage, share.stage),
            touching(routes, &Route::from_stage, share.stage)};
  };
  const Messages activations = of(cut.activations), gradients = of(cut.gradients), none;
  std::vector<Action> all;
  all.reserve(compute.size() * (2 + std::max(activations.size(), gradients.size())));
  for (const Action& action : compute) {
    const auto [stage, m] = std::pair(action.stage, action.microbatch);
    const bool forward = action.verb == Verb::forward;
    // The weight half needs nothing: its gradients came and went with the input half.
    const Messages& messages = forward                                ? activations
                               : action.verb == Verb::backward_weight ? none
                                                                      : gradients;
    if (forward && cut.loads[stage]) all.push_back({Verb::load, stage, m});
    for (const Route& route : messages.in)
      all.push_back({Verb::recv, stage, m, route.message, cut.rank_of(route.from_stage, m)});
    all.push_back(action);
    for (const Route& route : messages.out)
      all.push_back({Verb::send, stage, m, route.message, cut.rank_of(route.to_stage, m)});
  }
  return all;
}

void add_updates(std::vector<Action>& actions, const Share& share) {
  const bool learns = std::any_of(actions.begin(), actions.end(), [](const Action& a) {
    return a.verb == Verb::backward || a.verb == Verb::backward_weight;
  });
  if (!learns) return;
  if (share.replicas > 1) actions.push_back({Verb::reduce, share.stage});
  actions.push_back({Verb::update, share.stage});
}

}  // namespace antichain
