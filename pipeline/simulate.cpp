// Puts times to the actions of a schedule.
//
// Because sends are posted and every directed pair of ranks delivers in posting order, a rank's times depend only on
// its own list and on messages already sent: one walk over the schedule is the whole simulation, no event queue.
#include "pipeline/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "framework/error.h"
#include "pipeline/happens_before.h"
#include "pipeline/schedule_passes.h"

namespace antichain {
namespace {

using Seconds = std::array<double, size_t(Verb::step) + 1>;  // by verb; loads, sends and recvs: 0

int device_of(const Plan& plan, int rank, const Cluster& cluster) {
  const int device = plan.device_of(rank);
  if (!cluster.devices.empty() && device >= int(cluster.devices.size()))
    throw Error(fmt::format("the plan puts rank {} on device {}, but the cluster's devices are 0 to {}", rank,
                            device, int(cluster.devices.size()) - 1),
                "plan again for this cluster");
  return device;
}

// Every replica sends and receives its share of the weights twice, once to add up and once to spread the sums: no
// all-reduce moves less (Patarasuk and Yuan, "Bandwidth Optimal All-Reduce Algorithms for Clusters of Workstations",
// Journal of Parallel and Distributed Computing 2009).
double all_reduce_s(const PlanStage& stage, const Plan& plan, int64_t param_bytes, const Cluster& cluster) {
  const double r = double(stage.ranks.size());
  std::vector<int> devices;
  for (int rank : stage.ranks) devices.push_back(device_of(plan, rank, cluster));
  const Link& link = cluster.link(devices);
  return link.bytes_per_s > 0 ? 2 * (r - 1) / r * double(param_bytes) / link.bytes_per_s : 0;
}

// How long each rank takes for what: its stage's nodes added up, on its device.
std::vector<Seconds> seconds_of_ranks(const Plan& plan, const Profile& network, const Cluster& cluster) {
  std::vector<Seconds> of_ranks(size_t(plan.ranks()));
  for (const PlanStage& stage : plan.stages) {
    NodeCost sum;
    for (int n : stage.nodes) {
      const NodeCost& cost = network.nodes[n].cost;
      sum.forward_s += cost.forward_s;
      sum.backward_input_s += cost.backward_input_s;
      sum.backward_weight_s += cost.backward_weight_s;
      sum.update_s += cost.update_s;
      sum.param_bytes += cost.param_bytes;
    }
    for (int rank : stage.ranks) {
      const double speed = cluster.device(device_of(plan, rank, cluster)).speed;
      Seconds& s = of_ranks[size_t(rank)];
      s[size_t(Verb::forward)] = (sum.forward_s + network.overhead_s) / speed;
      s[size_t(Verb::backward)] = (sum.backward_s() + network.overhead_s) / speed;
      s[size_t(Verb::backward_input)] = (sum.backward_input_s + network.overhead_s) / speed;
      s[size_t(Verb::backward_weight)] = (sum.backward_weight_s + network.overhead_s) / speed;
      s[size_t(Verb::step)] = sum.update_s / speed;
      if (stage.ranks.size() > 1)
        s[size_t(Verb::reduce)] = all_reduce_s(stage, plan, sum.param_bytes, cluster);
    }
  }
  return of_ranks;
}

// The links between ranks: each directed pair carries one message at a time, in posting order.
class Links {
 public:
  Links(const Plan& plan, const Cluster& cluster)
      : cluster_(cluster), ranks_(size_t(plan.ranks())), free_s_(ranks_ * ranks_, 0) {
    for (size_t r = 0; r < ranks_; ++r) devices_.push_back(plan.device_of(int(r)));
  }
  // Returns when the message is there.
  double post(int from, int to, double now_s, int64_t bytes) {
    double& free_s = free_s_[size_t(from) * ranks_ + size_t(to)];
    free_s =
        std::max(free_s, now_s) + cluster_.link(devices_[size_t(from)], devices_[size_t(to)]).seconds(bytes);
    return free_s;
  }

 private:
  const Cluster& cluster_;
  const size_t ranks_;
  std::vector<int> devices_;    // per rank
  std::vector<double> free_s_;  // when a pair's link is free again
};

// Does the schedule in simulated time. Calls record(rank, index, start, end) for every action; on each rank in order.
template <class Record>
void interpret(const Schedule& schedule, const Plan& plan, const Profile& network, const Cluster& cluster,
               const std::vector<Seconds>& seconds, Record record) {
  const size_t ranks = schedule.ranks.size();
  const Partners partners = match_messages(schedule);
  Links links(plan, cluster);
  std::vector<double> now_s(ranks, 0);
  std::vector<std::vector<double>> there_s;  // of a recv: when its message arrives
  for (const auto& actions : schedule.ranks) there_s.emplace_back(actions.size());

  const auto visit = [&](int r, int i) {
    const Action& action = schedule.ranks[r][i];
    const double start_s = now_s[r];
    const double end_s = action.verb == Verb::recv ? std::max(start_s, there_s[r][i])
                                                   : start_s + seconds[r][size_t(action.verb)];
    if (action.verb == Verb::send)
      there_s[action.peer][partners.of[r][i]] =
          links.post(r, action.peer, start_s, network.nodes[action.message.tensor].cost.output_bytes);
    now_s[r] = end_s;
    record(r, i, start_s, end_s);
  };
  const auto meet = [&](const std::vector<Place>& places) {
    double last_s = 0;
    for (const Place& place : places) last_s = std::max(last_s, now_s[place.rank]);
    for (const Place& place : places) now_s[place.rank] = last_s;
  };
  check_all_reached(schedule, walk(schedule, partners, visit, meet));
}

}  // namespace

Timeline simulate(const Schedule& schedule, const Plan& plan, const Profile& network,
                  const Cluster& cluster) {
  validate(schedule, network, plan);
  const std::vector<Seconds> seconds = seconds_of_ranks(plan, network, cluster);
  const size_t ranks = schedule.ranks.size();
  Timeline timeline{.busy_s = std::vector<double>(ranks, 0)};
  std::vector<std::vector<Event>> events(ranks);
  interpret(schedule, plan, network, cluster, seconds, [&](int r, int i, double start_s, double end_s) {
    const Action& action = schedule.ranks[r][i];
    if (action.verb != Verb::reduce) timeline.busy_s[r] += seconds[r][size_t(action.verb)];
    timeline.step_s = std::max(timeline.step_s, end_s);
    events[r].push_back({r, action, start_s, end_s});
  });
  for (auto& of_rank : events) timeline.events.insert(timeline.events.end(), of_rank.begin(), of_rank.end());
  return timeline;
}

double step_s(const Profile& network, const Plan& plan, Policy policy, int microbatches,
              const Cluster& cluster) {
  double last_s = 0;
  interpret(compose(cut_of(network, plan), policy, microbatches), plan, network, cluster,
            seconds_of_ranks(plan, network, cluster),
            [&](int, int, double, double end_s) { last_s = std::max(last_s, end_s); });
  return last_s;
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
    case Verb::reduce:
      return "reduce";
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
