// Puts times to the actions of a schedule.
//
// Because sends are posted and every directed pair of ranks delivers in posting order, a rank's times depend only on
// its own list and on messages already sent: one walk over the schedule is the whole simulation, no event queue.
#include "pipeline/simulate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/error.h"
#include "pipeline/happens_before.h"

namespace antichain {
namespace {

// One stage's nodes added up.
struct StageCost {
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0, update_s = 0;
};

StageCost cost_of(const PlanStage& stage, const Profile& network) {
  StageCost sum;
  for (int n : stage.nodes) {
    const NodeCost& cost = network.nodes[n].cost;
    sum.forward_s += cost.forward_s;
    sum.backward_input_s += cost.backward_input_s;
    sum.backward_weight_s += cost.backward_weight_s;
    sum.update_s += cost.update_s;
  }
  return sum;
}

double seconds(Verb verb, const StageCost& cost, double overhead_s) {
  switch (verb) {
    case Verb::forward:
      return cost.forward_s + overhead_s;
    case Verb::backward:
      return cost.backward_input_s + cost.backward_weight_s + overhead_s;
    case Verb::backward_input:
      return cost.backward_input_s + overhead_s;
    case Verb::backward_weight:
      return cost.backward_weight_s + overhead_s;
    case Verb::step:
      return cost.update_s;
    case Verb::load:
    case Verb::recv:
    case Verb::send:
      break;
  }
  return 0;
}

// The links between ranks: each carries one message at a time, in posting order.
class Links {
 public:
  explicit Links(const Link& link) : link_(link) {}
  // Returns when the message is there.
  double post(int from, int to, double now_s, int64_t bytes) {
    double& free_s = free_s_[{from, to}];
    return free_s = std::max(free_s, now_s) + link_.seconds(bytes);
  }

 private:
  Link link_;
  std::map<std::pair<int, int>, double> free_s_;
};

}  // namespace

Timeline simulate(const Schedule& schedule, const Plan& plan, const Profile& network, const Link& link) {
  validate(schedule, network, plan);
  std::vector<StageCost> costs;
  for (const PlanStage& stage : plan.stages) costs.push_back(cost_of(stage, network));

  const size_t ranks = schedule.ranks.size();
  const Partners partners = match_messages(schedule);
  Links links(link);
  Timeline timeline{.busy_s = std::vector<double>(ranks, 0)};
  std::vector<std::vector<Event>> events(ranks);
  std::vector<std::vector<double>> there_s(ranks);  // of a recv: when its message arrives
  for (size_t r = 0; r < ranks; ++r) there_s[r].resize(schedule.ranks[r].size());

  walk(schedule, partners, [&](int r, int i) {
    const Action& action = schedule.ranks[r][i];
    const double start_s = events[r].empty() ? 0 : events[r].back().end_s;
    const double busy_s = seconds(action.verb, costs[action.stage], network.overhead_s);
    const double end_s = action.verb == Verb::recv ? std::max(start_s, there_s[r][i]) : start_s + busy_s;
    if (action.verb == Verb::send)
      there_s[action.peer][partners[r][i]] =
          links.post(r, action.peer, start_s, network.nodes[action.message.tensor].cost.output_bytes);
    timeline.busy_s[r] += busy_s;
    timeline.step_s = std::max(timeline.step_s, end_s);
    events[r].push_back({r, action, start_s, end_s});
  });
  for (auto& of_rank : events) timeline.events.insert(timeline.events.end(), of_rank.begin(), of_rank.end());
  return timeline;
}

double Timeline::bubble_share() const {
  double busy = 0;
  for (double s : busy_s) busy += s;
  const double all = step_s * double(busy_s.size());
  return all > 0 ? 1 - busy / all : 0;
}

double one_device_step_s(const Profile& network, int microbatches) {
  double compute_s = 2 * network.overhead_s, update_s = 0;
  for (const ProfileNode& node : network.nodes) {
    compute_s += node.cost.compute_s();
    update_s += node.cost.update_s;
  }
  return microbatches * compute_s + update_s;
}

std::string_view category_of(Verb verb) {
  switch (verb) {
    case Verb::load:
      return "load";
    case Verb::recv:
      return "recv";
    case Verb::forward:
      return "forward";
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      return "backward";
    case Verb::send:
      return "send";
    case Verb::step:
      break;
  }
  return "step";
}

std::vector<TraceEvent> to_trace(const Timeline& timeline) {
  std::vector<TraceEvent> trace;
  for (const Event& e : timeline.events)
    trace.push_back({e.rank, print(e.action), std::string(category_of(e.action.verb)), e.start_s, e.end_s});
  return trace;
}

}  // namespace antichain
