// What crosses a cut, and where in a rank's list it goes.
//
// An edge from stage a to stage b is "tensor of node n, micro-batch m", sent straight to b, next to a or not, so that
// skip connections need no relays. Gradients come back the same way, folded as far as promise and order allow.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/error.h"
#include "pipeline/schedule_passes.h"

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

std::vector<Route> activation_routes(const Profile& network, const Consumers& consumers,
                                     const std::vector<int>& stage_of) {
  std::vector<Route> routes;
  for (int n = 0; n < int(network.nodes.size()); ++n) {
    if (network.nodes[n].role == Role::input) continue;
    std::set<int> receivers;
    for (int consumer : consumers[n])
      if (stage_of[consumer] != stage_of[n]) receivers.insert(stage_of[consumer]);
    for (int to : receivers) routes.push_back({{Flow::activation, n, -1}, stage_of[n], to});
  }
  return routes;
}

std::vector<Route> gradient_routes(const Profile& network, const Consumers& consumers,
                                   const std::vector<int>& stage_of) {
  std::vector<Route> routes;
  for (int n = int(network.nodes.size()) - 1; n >= 0; --n) {
    if (!network.nodes[n].needs_gradient || network.nodes[n].role == Role::input) continue;
    for (const FoldTerm& term : fold(consumers, stage_of, n))
      if (term.stage != stage_of[n]) routes.push_back({term.message, term.stage, stage_of[n]});
  }
  return routes;
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

std::vector<int> one_rank_each(const Plan& plan) {
  std::vector<int> rank_of;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].ranks.size() != 1)
      throw Error(fmt::format("stage {} of the plan has {} ranks", s, plan.stages[s].ranks.size()),
                  "the runner has one rank per stage; plan without replicas");
    rank_of.push_back(plan.stages[s].ranks[0]);
  }
  return rank_of;
}

void append(std::vector<Action>& to, Verb verb, const Action& cause, const std::vector<Route>& routes,
            const Cut& cut) {
  for (const Route& route : routes) {
    const auto [here, there] = verb == Verb::send ? std::pair(route.from_stage, route.to_stage)
                                                  : std::pair(route.to_stage, route.from_stage);
    if (here == cause.stage) to.push_back({verb, here, cause.microbatch, route.message, cut.rank_of[there]});
  }
}

}  // namespace

std::vector<FoldTerm> gradient_fold(const Profile& network, const std::vector<int>& stage_of, int tensor) {
  const ProfileNode& node = network.nodes.at(tensor);
  if (!node.needs_gradient || node.role == Role::input) return {};
  return fold(network.consumers(), stage_of, tensor);
}

Cut cut_of(const Profile& network, const Plan& plan) {
  validate(plan, network);
  const std::vector<int> stage_of = plan.stage_of(int(network.nodes.size()));
  const Consumers consumers = network.consumers();
  return {activation_routes(network, consumers, stage_of), gradient_routes(network, consumers, stage_of),
          loading_stages(network, plan), one_rank_each(plan)};
}

std::vector<Action> add_messages(const std::vector<Action>& compute, const Cut& cut) {
  std::vector<Action> all;
  for (const Action& action : compute) {
    const bool forward = action.verb == Verb::forward;
    const bool weights_only = action.verb == Verb::backward_weight;  // its gradients came and went with I
    const std::vector<Route>& routes = forward ? cut.activations : cut.gradients;
    if (forward && cut.loads[action.stage]) all.push_back({Verb::load, action.stage, action.microbatch});
    if (!weights_only) append(all, Verb::recv, action, routes, cut);
    all.push_back(action);
    if (!weights_only) append(all, Verb::send, action, routes, cut);
  }
  return all;
}

std::vector<Action> add_updates(std::vector<Action> actions, int stage) {
  const bool learns = std::any_of(actions.begin(), actions.end(), [](const Action& a) {
    return a.verb == Verb::backward || a.verb == Verb::backward_weight;
  });
  if (learns) actions.push_back({Verb::step, stage});
  return actions;
}

}  // namespace antichain
