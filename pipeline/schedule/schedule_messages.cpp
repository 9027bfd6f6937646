// This file decides what crosses a cut, and where in a rank's list it goes.
//
// An edge from stage a to stage b is "tensor of node n, micro-batch m". It is sent straight to b, next to a
// or not, so that skip connections need no relays. Where b has replicas, it goes to the rank of b whose turn
// micro-batch m is. Gradients come back the same way, folded as far as promise and order allow. Nothing is
// sent where one rank has both stages. At the end of the step, ranks that share a weight exchange its
// gradient.
#include <algorithm>
#include <map>

#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

using Consumers = std::vector<std::vector<int>>;

std::vector<FoldTerm> fold(const Consumers& consumers, const std::vector<int>& stage_of, int tensor) {
  std::vector<FoldTerm> terms;
  fold_in_runs(consumers[tensor], stage_of, stage_of[tensor], [&](int consumer, bool joins) {
    if (joins)
      terms[0].message.consumer = consumer;
    else
      terms.push_back({stage_of[consumer], {Flow::gradient, tensor, consumer}});
  });
  return terms;
}

// Returns the stages that use a node's output, besides its own; ascending, each once.
std::vector<int> receivers(const std::vector<int>& consumers, const std::vector<int>& stage_of, int own) {
  std::vector<int> stages;
  for (int consumer : consumers)
    if (stage_of[consumer] != own) stages.push_back(stage_of[consumer]);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

// Returns the lowest node of the stage among the consumers.
int first_in(int stage, const std::vector<int>& consumers, const std::vector<int>& stage_of) {
  return *std::ranges::find_if(consumers, [&](int consumer) { return stage_of[consumer] == stage; });
}

bool meet(const std::vector<int>& ranks, const std::vector<int>& others) {
  return std::ranges::find_first_of(ranks, others) != ranks.end();
}

// Where a rank has several of the stages that use a tensor, each gets a message of its own, which names one
// of the stage's nodes.
Message activation(const Crossing& crossing, int tensor, int to, const std::vector<int>& receivers,
                   int consumer) {
  const bool alone = std::ranges::none_of(
      receivers, [&](int other) { return other != to && meet(crossing.ranks[other], crossing.ranks[to]); });
  return {Flow::activation, tensor, alone ? -1 : consumer};
}

void add_routes(Crossing& crossing, const Profile& profile, const std::vector<int>& stage_of) {
  const Consumers consumers = profile.consumers();
  std::vector<int> folded;  // nodes whose gradients come back, ascending
  for (int n = 0; n < int(profile.nodes.size()); ++n) {
    if (profile.nodes[n].role == Role::input) continue;
    const std::vector<int> stages = receivers(consumers[n], stage_of, stage_of[n]);
    for (int to : stages) {
      const int consumer = first_in(to, consumers[n], stage_of);
      crossing.activations.push_back({activation(crossing, n, to, stages, consumer), stage_of[n], to});
    }
    if (!stages.empty() && profile.nodes[n].needs_gradient) folded.push_back(n);
  }
  for (auto n = folded.rbegin(); n != folded.rend(); ++n)
    for (const FoldTerm& term : fold(consumers, stage_of, *n))
      if (term.stage != stage_of[*n]) crossing.gradients.push_back({term.message, term.stage, stage_of[*n]});
}

// Consecutive uses on the same ranks are one run, within which nothing travels.
void add_weight_routes(Crossing& crossing, const Profile& profile, const std::vector<int>& stage_of) {
  for (const SharedWeight& weight : profile.shared_weights()) {
    WeightRoutes routes;
    std::vector<std::vector<int>> told;  // the ranks that know the whole gradient
    const auto stage = [&](const ParamUse& use) { return stage_of[size_t(use.node)]; };
    const auto ranks = [&](const ParamUse& use) { return crossing.ranks[size_t(stage(use))]; };
    const auto message = [](const ParamUse& use) { return Message{Flow::weight, use.node, use.param}; };
    for (size_t i = 0; i + 1 < weight.uses.size(); ++i) {
      const ParamUse &use = weight.uses[i], &next = weight.uses[i + 1];
      if (ranks(use) != ranks(next)) routes.folds.push_back({message(use), stage(use), stage(next)});
    }
    const ParamUse& first = weight.uses.back();
    told.push_back(ranks(first));
    for (const ParamUse& use : weight.uses) {
      if (std::ranges::count(told, ranks(use))) continue;
      told.push_back(ranks(use));
      routes.totals.push_back({message(first), stage(first), stage(use)});
    }
    if (!routes.folds.empty()) crossing.weights.push_back(std::move(routes));
  }
}

std::vector<bool> loading_stages(const Profile& profile, const Plan& plan) {
  std::vector<bool> loads;
  const auto is_input = [&](int n) { return profile.nodes[n].role == Role::input; };
  for (const PlanStage& stage : plan.stages)
    loads.push_back(std::any_of(stage.nodes.begin(), stage.nodes.end(), [&](int n) {
      const auto& inputs = profile.nodes[n].inputs;
      return std::any_of(inputs.begin(), inputs.end(), is_input);
    }));
  return loads;
}

// Returns what one stage sends or receives of a flow.
std::vector<Route> touching(const std::vector<Route>& routes, int Route::*end, int stage) {
  std::vector<Route> found;
  std::copy_if(routes.begin(), routes.end(), std::back_inserter(found),
               [&](const Route& route) { return route.*end == stage; });
  return found;
}

}  // namespace

std::vector<FoldTerm> gradient_fold(const Profile& profile, const std::vector<int>& stage_of, int tensor) {
  const ProfileNode& node = profile.nodes.at(tensor);
  if (!node.needs_gradient || node.role == Role::input) return {};
  return fold(profile.consumers(), stage_of, tensor);
}

Crossing crossing_of(const Profile& profile, const Plan& plan) {
  Crossing crossing{.loads = loading_stages(profile, plan)};
  for (const PlanStage& stage : plan.stages) {
    crossing.ranks.push_back(stage.ranks);
    crossing.buckets.push_back(stage.ranks.size() > 1 ? bucket_count(profile, stage.nodes) : 1);
  }
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  add_routes(crossing, profile, stage_of);
  add_weight_routes(crossing, profile, stage_of);
  return crossing;
}

std::vector<WeightHop> all_weight_routes(const Crossing& crossing) {
  std::vector<WeightHop> all;
  for (const WeightRoutes& of : crossing.weights) {
    for (const Route& route : of.folds) all.push_back({int(&route - of.folds.data()), route});
    for (const Route& route : of.totals) all.push_back({int(of.folds.size()), route});
  }
  std::ranges::stable_sort(all, {}, &WeightHop::hop);
  return all;
}

std::vector<Action> add_messages(const ComputeOrder& order, const Crossing& crossing) {
  struct Messages {
    std::vector<Route> in, out;
  };
  struct OfStage {
    Messages activations, gradients;
  };
  std::map<int, OfStage> stages;
  for (const Action& action : order.actions) stages.try_emplace(action.stage);
  for (auto& [stage, messages] : stages)
    for (const auto& [routes, own] : {std::pair(&crossing.activations, &messages.activations),
                                      std::pair(&crossing.gradients, &messages.gradients)})
      *own = {touching(*routes, &Route::to_stage, stage), touching(*routes, &Route::from_stage, stage)};
  const Messages none;
  const auto messages_of = [&](const Action& a) -> const Messages& {
    // The weight half needs nothing: its gradients came and went with the input half.
    if (a.verb == Verb::backward_weight) return none;
    return a.verb == Verb::forward ? stages.at(a.stage).activations : stages.at(a.stage).gradients;
  };
  std::vector<Action> all;
  const auto add = [&](Verb verb, const Route& route, const Action& a, int peer_stage) {
    if (!crossing.stays(route, a.microbatch))
      all.push_back({verb, a.stage, a.microbatch, route.message, crossing.rank_of(peer_stage, a.microbatch)});
  };
  const auto add_inputs = [&](const Action& a) {
    if (a.verb == Verb::forward && crossing.loads[a.stage])
      all.push_back({Verb::load, a.stage, a.microbatch});
    for (const Route& route : messages_of(a).in) add(Verb::recv, route, a, route.from_stage);
  };
  auto pair = order.pairs.begin();
  bool second = false;  // of a pair: its inputs are there
  for (size_t i = 0; i < order.actions.size(); ++i) {
    const Action& action = order.actions[i];
    if (!second) add_inputs(action);
    second = pair != order.pairs.end() && *pair == i;
    if (second) {
      add_inputs(order.actions.at(i + 1));
      ++pair;
    }
    all.push_back(action);
    for (const Route& route : messages_of(action).out) add(Verb::send, route, action, route.to_stage);
  }
  return all;
}

namespace {

// Every rank comes to these messages in one order, by hops, and posts what it sends of a hop before it waits
// for what it receives. So none waits forever.
void add_weight_messages(std::vector<Action>& actions, const std::vector<Seat>& of_rank,
                         const Crossing& crossing) {
  const std::vector<WeightHop> routes = all_weight_routes(crossing);
  const int hops = routes.empty() ? 0 : routes.back().hop + 1;
  for (int hop = 0; hop < hops; ++hop)
    for (const Verb verb : {Verb::send, Verb::recv})
      for (const auto& [of_hop, route] : routes)
        for (const Seat& seat : of_rank) {
          const bool sends = verb == Verb::send;
          if (of_hop != hop || seat.stage != (sends ? route.from_stage : route.to_stage)) continue;
          const int other = sends ? route.to_stage : route.from_stage;
          for (int m = 0; m < crossing.replicas(route.to_stage); ++m)
            if (m % seat.replicas == seat.replica && !crossing.stays(route, m))
              actions.push_back({verb, seat.stage, m, route.message, crossing.rank_of(other, m)});
        }
}

void add_all_reduces(std::vector<Action>& actions, int stage, int buckets) {
  for (int k = 0; k < buckets; ++k)
    actions.push_back({.verb = Verb::reduce, .stage = stage, .bucket = buckets > 1 ? k : -1});
}

}  // namespace

void add_update_of_each_step(std::vector<Action>& actions, const Seat& seat, const Crossing& crossing) {
  const int of_step = seat.microbatches_of_step();
  std::vector<Action> all;
  bool due = false;
  const auto add = [&] {
    if (seat.replicas > 1) add_all_reduces(all, seat.stage, crossing.buckets[size_t(seat.stage)]);
    all.push_back({Verb::update, seat.stage});
    due = false;
  };
  for (const Action& a : actions) {
    if (due && a.verb != Verb::send) add();
    all.push_back(a);
    due = due || (a.verb == Verb::backward && a.microbatch % of_step + seat.replicas >= of_step);
  }
  if (due) add();
  actions = std::move(all);
}

void add_updates(std::vector<Action>& actions, const std::vector<Seat>& of_rank, const Crossing& crossing) {
  const bool learns = std::any_of(actions.begin(), actions.end(), [](const Action& a) {
    return a.verb == Verb::backward || a.verb == Verb::backward_weight;
  });
  if (!learns) return;
  for (const Seat& seat : of_rank)
    if (seat.replicas > 1) add_all_reduces(actions, seat.stage, crossing.buckets[size_t(seat.stage)]);
  add_weight_messages(actions, of_rank, crossing);
  for (const Seat& seat : of_rank) actions.push_back({Verb::update, seat.stage});
}

}  // namespace antichain
