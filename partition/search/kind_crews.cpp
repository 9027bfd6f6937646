#include "partition/search/kind_crews.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr int rounds = 120;          // of prices, for one threshold
constexpr double precision = 5e-4;   // of the thresholds
constexpr size_t most_kept = 2000;   // at a state
constexpr int most_for_memory = 64;  // devices that a stage gets beyond those that its time needs
constexpr int nothing = std::numeric_limits<int>::max();

struct Crew {
  int state = 0, kind = -1, count = 0;  // the state at the stage's end, and its devices
};

class CrewSearch {
 public:
  CrewSearch(const AntichainDag& dag, const Profile& profile, const PlanOptions& options)
      : dag_(dag), options_(options), devices_(options.devices()) {
    const CutGraph& graph = dag.graph();
    const auto sums = [&](auto price) {
      std::vector<int64_t> of_nodes;
      for (const std::vector<int>& members : graph.nodes) {
        of_nodes.push_back(0);
        for (const int n : members) of_nodes.back() += price(n);
      }
      return dag.sums(of_nodes);
    };
    const Cluster& cluster = options.cluster;
    const bool free = cluster.within_node.bytes_per_s <= 0 || cluster.between_nodes.bytes_per_s <= 0;
    const Link& link = cluster.within_node.bytes_per_s > cluster.between_nodes.bytes_per_s
                           ? cluster.within_node
                           : cluster.between_nodes;
    gradient_ns_ = sums([&](int n) {
      const int64_t bytes = profile.nodes[size_t(n)].cost.param_bytes;
      return free ? 0 : gradient_ns(bytes, link, options.microbatches);
    });
    for (const std::vector<int>& members : PlacementDag::kinds(options, devices_)) {
      const Device& device = cluster.device(members.front());
      const Profile& times = cluster.profile(device.profile, profile);
      kinds_.push_back({int(members.size()), device.memory_bytes,
                        sums([&](int n) { return work_ns(times, n, device.speed); })});
    }
    param_bytes_ = dag.sums(graph.param_bytes), held_bytes_ = dag.sums(graph.held_bytes);
    kept_bytes_ = dag.sums(graph.kept_bytes), slot_bytes_ = dag.sums(graph.slot_bytes);
    price_.assign(kinds_.size(), 1);
  }

  KindCrews run(int64_t low) {
    // 1. Find a threshold with a plan, and the smallest by halves.
    KindCrews found{.lower_bound_ns = low};
    refuted_ = low - 1;
    int64_t below = low - 1, at = low;
    std::vector<Crew> best = plan(at);
    for (; best.empty() && at < barred_ns; best = plan(at)) below = at, at += at / 4 + 1;
    if (best.empty()) return found;
    while (double(at - below) > precision * double(at)) {
      const int64_t middle = below + (at - below) / 2;
      if (std::vector<Crew> better = plan(middle); !better.empty())
        best = std::move(better), at = middle;
      else
        below = middle;
    }
    // 2. Find the largest threshold that certainly no plan keeps.
    for (int64_t high = at; double(high - refuted_) > precision * double(high);) {
      const int64_t middle = refuted_ + (high - refuted_) / 2;
      (refute(middle) ? refuted_ : high) = middle;
    }
    found.lower_bound_ns = refuted_ + 1;
    for (const Crew& crew : best) found.crews.emplace_back(crew.kind, crew.count);
    return found;
  }

 private:
  struct Kind {
    int count = 0;
    int64_t memory_bytes = 0;
    std::vector<int64_t> work_ns;  // by state
  };

  int64_t of_all(const Kind& kind, int from, int to, int replicas) const {
    return stage_ns_of_all(kind.work_ns[size_t(to)] - kind.work_ns[size_t(from)],
                           gradient_ns_[size_t(to)] - gradient_ns_[size_t(from)], replicas);
  }

  // Returns how many devices of the kind the stage needs to keep the threshold.
  int needed(const Kind& kind, int from, int to) const {
    const int64_t work = of_all(kind, from, to, 1), reduce = of_all(kind, from, to, 2) - work;
    if (work <= threshold_) return 1;
    if (options_.replicas.off() || reduce >= threshold_ || work <= reduce) return nothing;
    const int64_t count = (work - reduce + threshold_ - reduce - 1) / (threshold_ - reduce);
    return count <= std::min(options_.microbatches, kind.count) ? int(count) : nothing;
  }

  bool fits(const Kind& kind, int from, int to, int count, int left) const {
    if (kind.memory_bytes == 0) return true;
    const auto part = [&](const std::vector<int64_t>& sums) { return sums[size_t(to)] - sums[size_t(from)]; };
    const StageSum sum{.param_bytes = part(param_bytes_),
                       .held_bytes = part(held_bytes_),
                       .kept_bytes = part(kept_bytes_),
                       .slot_bytes = part(slot_bytes_)};
    const int in_flight =
        options_.in_flight({options_.microbatches, devices_, std::min(left + count, devices_), count});
    return memory_bytes(sum, in_flight, count, options_.shard_optimiser) <= kind.memory_bytes;
  }

  void set(int64_t threshold) {
    threshold_ = threshold;
    needed_.assign(size_t(dag_.states()) * size_t(dag_.states()) * kinds_.size(), nothing);
    for (int from = 0; from < dag_.full(); ++from)
      for (int to = from + 1; to <= dag_.full(); ++to)
        for (size_t k = 0; k < kinds_.size() && dag_.inside(from, to); ++k)
          need(from, to, k) = needed(kinds_[k], from, to);
  }
  int& need(int from, int to, size_t kind) {
    return needed_[(size_t(from) * size_t(dag_.states()) + size_t(to)) * kinds_.size() + kind];
  }

  // Returns the cost of the cheapest path, and what share of each kind's devices it needs. `to_come_` has the
  // cost of the cheapest path to each state.
  std::pair<double, std::vector<double>> cheapest() {
    to_come_.assign(size_t(dag_.states()), std::numeric_limits<double>::infinity());
    std::vector<Crew> last(to_come_.size());
    to_come_[0] = 0;
    for (int to = 1; to <= dag_.full(); ++to)
      for (int from = 0; from < to; ++from)
        for (size_t k = 0; k < kinds_.size(); ++k) {
          const int count = need(from, to, k);
          const double all = count == nothing ? std::numeric_limits<double>::infinity()
                                              : price_[k] * count + to_come_[size_t(from)];
          if (all < to_come_[size_t(to)])
            to_come_[size_t(to)] = all, last[size_t(to)] = {from, int(k), count};
        }
    std::vector<double> shares(kinds_.size());
    for (int at = dag_.full(); at > 0 && last[size_t(at)].kind >= 0; at = last[size_t(at)].state)
      shares[size_t(last[size_t(at)].kind)] += last[size_t(at)].count;
    for (size_t k = 0; k < shares.size(); ++k) shares[k] /= kinds_[k].count;
    return {to_come_.back(), std::move(shares)};
  }

  // A Label is a way to have the stages from a state on: what they use of each kind, and the next stage.
  struct Label {
    double cost = 0;  // by the prices
    std::vector<int> used;
    int left = 0;  // devices in all
    Crew crew;
    int next = -1;  // the label at the end of the stage
  };

  // Returns the stages of a plan that has no more devices of any kind than there are, or none.
  std::vector<Crew> path() {
    const bool in_memory = options_.cluster.limits_memory();
    const double all = of_all_devices() * (1 + 1e-9);
    std::vector<std::vector<Label>> labels(size_t(dag_.states()));
    exact_ = true;
    labels.back().push_back({.used = std::vector<int>(kinds_.size(), 0)});
    for (int from = dag_.full() - 1; from >= 0; --from) {
      std::vector<Label>& here = labels[size_t(from)];
      for (int to = from + 1; to <= dag_.full(); ++to)
        for (size_t k = 0; k < kinds_.size(); ++k) {
          const int least = need(from, to, k);
          if (least == nothing) continue;
          for (size_t l = 0; l < labels[size_t(to)].size(); ++l) {
            const Label& next = labels[size_t(to)][l];
            const int most = std::min({options_.replicas.off() ? 1 : options_.microbatches,
                                       kinds_[k].count - next.used[k], least + most_for_memory});
            int count = least;
            while (in_memory && count <= most && !fits(kinds_[k], from, to, count, next.left + later_))
              ++count;
            exact_ &= count <= least + most_for_memory;
            const double cost = next.cost + price_[k] * count;
            if (count > most || cost + to_come_[size_t(from)] > all) continue;
            here.push_back({cost, next.used, next.left + count, {to, int(k), count}, int(l)});
            here.back().used[k] += count;
          }
        }
      keep_best(here);
    }
    if (labels[0].empty() && exact_ && later_ == 0) refuted_ = std::max(refuted_, threshold_);
    const auto uses_all = [](const Label& label) {
      return std::ranges::find(label.used, 0) == label.used.end();
    };
    const auto found = options_.at_most ? labels[0].begin() : std::ranges::find_if(labels[0], uses_all);
    if (found == labels[0].end()) return {};
    std::vector<Crew> stages;
    for (int at = 0, l = int(found - labels[0].begin()); at != dag_.full();) {
      const Label& label = labels[size_t(at)][size_t(l)];
      stages.push_back(label.crew);
      at = label.crew.state, l = label.next;
    }
    return stages;
  }

  // Leaves the cheapest labels, of which none uses the kinds of another and at least as much of each: in the
  // end all kinds have to be used.
  void keep_best(std::vector<Label>& labels) {
    std::ranges::sort(labels, {}, [](const Label& l) { return std::tie(l.cost, l.used); });
    std::vector<Label> kept;
    for (Label& label : labels) {
      const auto no_more = [&](const Label& other) {
        return std::ranges::equal(other.used, label.used,
                                  [](int a, int b) { return a <= b && (a == 0) == (b == 0); });
      };
      if (std::ranges::any_of(kept, no_more)) continue;
      kept.push_back(std::move(label));
      if (kept.size() <= most_kept) continue;
      kept.pop_back();
      exact_ = false;
      break;
    }
    labels = std::move(kept);
  }

  double of_all_devices() const {
    double all = 0;
    for (size_t k = 0; k < kinds_.size(); ++k) all += price_[k] * kinds_[k].count;
    return all;
  }
  void make_dearer(const std::vector<double>& shares, int round) {
    const double most = std::ranges::max(shares);
    for (size_t k = 0; k < shares.size() && most > 0; ++k)
      price_[k] *= std::exp(0.5 / std::sqrt(round) * (shares[k] / most - 0.5));
    const double all = of_all_devices();
    for (double& price : price_) price /= all;
  }

  // Says whether no plan keeps the threshold, as far as prices show that. Otherwise it leaves the prices by
  // which a plan costs most.
  bool refute(int64_t threshold) {
    set(threshold);
    std::vector<double> best;
    double most = 0;
    for (int round = 1; round <= rounds; ++round) {
      const auto [cost, shares] = cheapest();
      if (cost > of_all_devices() * (1 + 1e-9)) return true;
      if (cost / of_all_devices() > most) most = cost / of_all_devices(), best = price_;
      make_dearer(shares, round);
    }
    price_ = best;
    cheapest();
    return false;
  }

  // Returns the stages of a plan that keeps the threshold, or none.
  std::vector<Crew> plan(int64_t threshold) {
    if (refute(threshold)) return {};
    later_ = 0;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<Crew> stages = path();
      if (stages.empty()) return {};
      std::vector<Crew> all = spread(stages);
      if (all.empty() || fit(all)) return all;
      later_ = devices_ - devices_of(stages);
    }
    return {};
  }

  static int devices_of(const std::vector<Crew>& stages) {
    int all = 0;
    for (const Crew& crew : stages) all += crew.count;
    return all;
  }

  bool fit(const std::vector<Crew>& stages) const {
    int left = devices_of(stages), from = 0;
    for (const Crew& crew : stages) {
      left -= crew.count;
      if (!fits(kinds_[size_t(crew.kind)], std::exchange(from, crew.state), crew.state, crew.count, left))
        return false;
    }
    return true;
  }

  // Gives what is left of each kind to its slowest stages.
  std::vector<Crew> spread(std::vector<Crew> stages) const {
    if (options_.at_most || options_.replicas.off()) return stages;
    std::vector<int> left;
    for (const Kind& kind : kinds_) left.push_back(kind.count);
    int all = devices_ - devices_of(stages);
    for (const Crew& crew : stages) left[size_t(crew.kind)] -= crew.count;
    while (all > 0) {
      int64_t slowest = -1;
      Crew* of = nullptr;
      for (size_t s = 0, from = 0; s < stages.size(); from = size_t(stages[s++].state)) {
        Crew& crew = stages[s];
        const int64_t ns =
            of_one_replica(of_all(kinds_[size_t(crew.kind)], int(from), crew.state, crew.count), crew.count);
        if (left[size_t(crew.kind)] > 0 && crew.count < options_.microbatches && ns > slowest)
          slowest = ns, of = &crew;
      }
      if (!of) return {};
      ++of->count, --left[size_t(of->kind)], --all;
    }
    return stages;
  }

  const AntichainDag& dag_;
  const PlanOptions& options_;
  const int devices_;
  std::vector<Kind> kinds_;
  std::vector<int64_t> gradient_ns_, param_bytes_, held_bytes_, kept_bytes_, slot_bytes_;  // by state
  std::vector<double> price_;    // of a device of each kind
  std::vector<double> to_come_;  // by state
  int64_t refuted_ = 0;          // no plan keeps this threshold
  bool exact_ = true;            // whether the last path() left no label out
  int64_t threshold_ = 0;
  int later_ = 0;            // devices that later stages may get beyond those that they need
  std::vector<int> needed_;  // by the states at a stage's ends, and kind
};

}  // namespace

KindCrews crews_by_kind(const AntichainDag& dag, const Profile& profile, const PlanOptions& options,
                        int64_t low) {
  return CrewSearch(dag, profile, options).run(low);
}

}  // namespace antichain
