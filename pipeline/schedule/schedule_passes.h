// These are the passes that make_schedule composes, and what a cut asks to be sent. The validator and the
// simulator use them, too. Pass 1, the order in which ranks compute, is Policy::orders.
#pragma once

#include <span>
#include <vector>

#include "pipeline/schedule/policy.h"

namespace antichain {

// A Route is one tensor or gradient that crosses the cut, once every micro-batch; or, once a step, the
// gradient of a shared weight.
struct Route {
  Message message;
  int from_stage = 0, to_stage = 0;
  auto operator<=>(const Route&) const = default;
};

// This is the one rule of a fold. It goes through a tensor's consumers from the highest node to the lowest
// and calls visit(consumer, joins): `joins` says that its gradient is pre-summed into the message of the one
// before. Only another stage's run that starts the fold is pre-summed. `consumers` ascend; `own` is the
// tensor's stage.
template <class Visit>
void fold_in_runs(std::span<const int> consumers, const std::vector<int>& stage_of, int own, Visit visit) {
  int leader = -1;  // the stage whose run starts the fold, while it lasts
  for (auto c = consumers.rbegin(); c != consumers.rend(); ++c) {
    const int stage = stage_of[size_t(*c)];
    const bool first = c == consumers.rbegin(), joins = !first && stage == leader;
    leader = stage != own && (first || joins) ? stage : -1;
    visit(*c, joins);
  }
}

// These are the ways of one shared weight's gradient: the fold goes from rank to rank, each of which adds
// what its uses contribute, and from the last one the whole gradient goes to all the others.
struct WeightRoutes {
  std::vector<Route> folds;   // in order
  std::vector<Route> totals;  // to one stage of each other rank
};

// A Crossing is what crosses the cut of a plan: the messages that the plan requires, and who loads. Where one
// rank has both stages of a route, the tensor is there already, and no message is sent.
struct Crossing {
  std::vector<Route> activations;       // by tensor, then receiving stage, ascending
  std::vector<Route> gradients;         // by tensor descending, then in the order of the fold
  std::vector<WeightRoutes> weights;    // of each shared weight that several ranks have
  std::vector<bool> loads;              // per stage: whether it uses an input node
  std::vector<std::vector<int>> ranks;  // per stage, one per replica
  std::vector<int> buckets;             // of gradients, per stage with replicas; else 1

  int stages() const { return int(ranks.size()); }
  int replicas(int stage) const { return int(ranks[stage].size()); }
  int rank_of(int stage, int microbatch) const { return ranks[stage][microbatch % replicas(stage)]; }
  bool stays(const Route& route, int microbatch) const {
    return rank_of(route.from_stage, microbatch) == rank_of(route.to_stage, microbatch);
  }
};
// Returns the routes of all shared weights' gradients, in the order in which every rank comes to them: by how
// many routes a gradient has taken before.
struct WeightHop {
  int hop = 0;
  Route route;
};
std::vector<WeightHop> all_weight_routes(const Crossing&);

// The plan must be valid.
Crossing crossing_of(const Profile& profile, const Plan&);

// Throws Error for no micro-batches, a stage with more replicas than micro-batches, or too many messages.
void check_seats(const Crossing&, int microbatches);

// Pass 2 puts loads and recvs right before the compute action (or fused pair) that needs them, and sends
// right after the one that produces the tensor.
std::vector<Action> add_messages(const ComputeOrder&, const Crossing&);

// Pass 3 puts one update of each seat's stage at the end, when there is anything to learn from. Before the
// updates, replicas wait for the sums of their gradients, bucket by bucket, and ranks that share weights tell
// each other their gradients.
void add_updates(std::vector<Action>&, const std::vector<Seat>& of_rank, const Crossing&);

// Does the same for the seat of a rank in a schedule of several steps: all this follows the last backward of
// each step.
void add_update_of_each_step(std::vector<Action>&, const Seat&, const Crossing&);

// Does passes 2 and 3. `microbatches` are those of all steps.
Schedule complete(const ComputeOrders&, const Crossing&, const Seats&, int microbatches, int steps = 1);
// Does all passes, without the validator. `microbatches` are those of a step.
Schedule compose(const Crossing&, const Policy&, int microbatches, int steps = 1);
// Returns how many steps make_flowing_schedule puts in a row: 1 where ranks share weights, and wait for each
// other's gradients, and where a micro-batch is another replica's turn in the next step.
int steps_in_a_row(const Policy&, const Crossing&, int microbatches);

}  // namespace antichain
