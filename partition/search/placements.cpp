#include "partition/search/placements.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace antichain {
namespace {

bool levels_differ(const Cluster& cluster) {
  const Link &a = cluster.within_node, &b = cluster.between_nodes;
  if (a.bytes_per_s == b.bytes_per_s && a.latency_s == b.latency_s) return false;
  return std::any_of(cluster.devices.begin(), cluster.devices.end(),
                     [&](const Device& d) { return d.node != cluster.devices[0].node; });
}

}  // namespace

// The builder goes breadth first over Used. Placements are then numbered by capacity.
class PlacementBuilder {
 public:
  PlacementBuilder(const PlanOptions& options, int devices)
      : options_(options), devices_(devices), nodes_matter_(levels_differ(options.cluster)) {}

  void group_alike() { dag_.kinds_ = PlacementDag::kinds(options_, devices_); }

  void keep_order(const std::vector<int>& order) {
    in_order_ = true;
    for (int d : order) dag_.kinds_.push_back({d});
  }

  PlacementDag of_crews(const std::vector<std::pair<int, int>>& crews) {
    Used from{std::vector<int>(dag_.kinds_.size(), 0), -1};
    add(from);
    for (const auto& crew : crews) {
      crew_ = {crew};
      move(from, int(used_.size()) - 1, crew.second);
      from = used_.back();
    }
    number();
    return std::move(dag_);
  }

  std::optional<PlacementDag> run(int max_moves) {
    add({std::vector<int>(dag_.kinds_.size(), 0), -1});
    for (size_t p = 0; p < used_.size(); ++p) {
      const Used from = used_[p];
      const int taken = total(from);
      for (int r = smallest_crew(taken); r <= largest_crew(taken); ++r) {
        crew_.clear();
        enumerate(from, int(p), 0, r, r);
        if (int(moves_.size()) > max_moves) return std::nullopt;
      }
    }
    number();
    return std::move(dag_);
  }

 private:
  // A Used says how many of each kind are used, and the node of the last stage: −1 where it does not matter
  // or was not one.
  struct Used {
    std::vector<int> of_kind;
    int last_node = -1;
    auto operator<=>(const Used&) const = default;
  };

  static int total(const Used& used) { return std::accumulate(used.of_kind.begin(), used.of_kind.end(), 0); }

  int of_stage_after(int taken) const {
    for (int r : options_.replicas.of_stage) {
      if (taken == 0) return r;
      taken -= r;
    }
    return 0;
  }
  int smallest_crew(int taken) const {
    return options_.replicas.of_stage.empty() ? 1 : std::max(1, of_stage_after(taken));
  }
  int largest_crew(int taken) const {
    const int left = devices_ - taken;
    if (options_.replicas.off()) return std::min(1, left);
    // More replicas than micro-batches would have nothing to do.
    return std::min(left, options_.replicas.automatic ? options_.microbatches : of_stage_after(taken));
  }

  // Goes through the crews of r devices from kind `kind` on. It is one level deep per kind that gives some,
  // so at most r levels.
  void enumerate(const Used& from, int number, int kind, int wanted, int r) {
    if (wanted == 0) return move(from, number, r);
    for (int k = kind; k < int(dag_.kinds_.size()); ++k) {
      const int left = int(dag_.kinds_[k].size()) - from.of_kind[k];
      if (left == 0) continue;
      if (!alike(k)) {
        if (in_order_) return;
        continue;
      }
      for (int count = std::min(left, wanted); count >= 1; --count) {
        crew_.emplace_back(k, count);
        enumerate(from, number, k + 1, wanted - count, r);
        crew_.pop_back();
      }
      if (in_order_) return;  // the next device must be in
    }
  }

  bool alike(int kind) const {  // to the crew so far
    if (crew_.empty()) return true;
    const Device &a = device(crew_[0].first), &b = device(kind);
    return a.profile == b.profile && a.host == b.host;
  }

  const Device& device(int kind) const { return options_.cluster.device(dag_.kinds_[kind][0]); }

  void move(const Used& from, int number, int replicas) {
    Used to = from;
    const Device& first = device(crew_[0].first);
    Move move = {.from = number,
                 .crew = crew_,
                 .replicas = replicas,
                 .speed = first.speed,
                 .profile = first.profile,
                 .host = first.host};
    const int node = first.node;
    for (const auto& [kind, count] : crew_) {
      const Device& d = device(kind);
      to.of_kind[kind] += count;
      move.speed = std::min(move.speed, d.speed);
      move.reduces_between_nodes |= d.node != node;
      if (d.memory_bytes > 0)
        move.memory_bytes =
            move.memory_bytes > 0 ? std::min(move.memory_bytes, d.memory_bytes) : d.memory_bytes;
    }
    if (nodes_matter_) {
      to.last_node = move.reduces_between_nodes ? -1 : node;
      move.arrives_between_nodes = total(from) > 0 && (to.last_node < 0 || to.last_node != from.last_node);
    } else {
      move.reduces_between_nodes = false;
    }
    move.in_flight = options_.in_flight({options_.microbatches, devices_, devices_ - total(from), replicas});
    move.to = add(to);
    moves_.push_back(std::move(move));
  }

  int add(const Used& used) {
    const auto [place, fresh] = index_.try_emplace(used, int(used_.size()));
    if (fresh) used_.push_back(used);
    return place->second;
  }

  double capacity(const Used& used) const {
    double sum = 0;
    for (size_t k = 0; k < used.of_kind.size(); ++k) sum += used.of_kind[k] * device(int(k)).speed;
    return sum;
  }

  void number() {
    std::vector<int> order(used_.size()), place(used_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return capacity(used_[a]) < capacity(used_[b]); });
    for (size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = int(i);
      dag_.capacity_.push_back(capacity(used_[order[i]]));
      dag_.complete_.push_back(total(used_[order[i]]) == devices_);
    }
    for (Move& m : moves_) m.from = place[m.from], m.to = place[m.to];
    std::stable_sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) {
      return std::tie(a.to, a.from) < std::tie(b.to, b.from);
    });
    dag_.moves_ = std::move(moves_);
    dag_.into_begin_.assign(used_.size() + 1, 0);
    for (const Move& m : dag_.moves_) ++dag_.into_begin_[m.to + 1];
    std::partial_sum(dag_.into_begin_.begin(), dag_.into_begin_.end(), dag_.into_begin_.begin());
  }

  const PlanOptions& options_;
  const int devices_;
  const bool nodes_matter_;
  bool in_order_ = false;
  PlacementDag dag_;
  std::vector<Used> used_;
  std::map<Used, int> index_;
  std::vector<Move> moves_;
  std::vector<std::pair<int, int>> crew_;  // of enumerate, so far
};

std::optional<PlacementDag> PlacementDag::build(const PlanOptions& options, int devices, int max_moves) {
  PlacementBuilder builder(options, devices);
  builder.group_alike();
  std::optional<PlacementDag> dag = builder.run(max_moves);
  if (dag) dag->has_all_ = true;
  return dag;
}

PlacementDag PlacementDag::in_order(const PlanOptions& options, const std::vector<int>& order) {
  PlacementBuilder builder(options, int(order.size()));
  builder.keep_order(order);
  return *builder.run(1 << 30);
}

PlacementDag PlacementDag::of_crews(const PlanOptions& options,
                                    const std::vector<std::pair<int, int>>& crews) {
  int devices = 0;
  for (const auto& [kind, count] : crews) devices += count;
  PlacementBuilder builder(options, devices);
  builder.group_alike();
  return builder.of_crews(crews);
}

std::vector<std::vector<int>> PlacementDag::kinds(const PlanOptions& options, int devices) {
  const Cluster& cluster = options.cluster;
  const int all = cluster.devices.empty() ? devices : int(cluster.devices.size());
  const bool nodes_matter = levels_differ(cluster);
  std::map<std::tuple<int, int, bool, double, int64_t>, std::vector<int>> alike;
  for (int d = 0; d < all; ++d) {
    const Device& device = cluster.device(d);
    alike[{nodes_matter ? device.node : 0, device.profile, device.host, -device.speed, device.memory_bytes}]
        .push_back(d);
  }
  std::vector<std::vector<int>> kinds;
  for (auto& [key, members] : alike) kinds.push_back(std::move(members));
  return kinds;
}

std::span<const Move> PlacementDag::into(int placement) const {
  return {moves_.data() + into_begin_[placement], moves_.data() + into_begin_[placement + 1]};
}

// Goes backwards, so that every way leads to 0.
std::vector<std::vector<const Move*>> PlacementDag::paths(size_t most) const {
  std::vector<std::vector<const Move*>> found;
  std::vector<const Move*> path;
  const std::function<void(int)> go = [&](int placement) {
    if (placement == 0) found.emplace_back(path.rbegin(), path.rend());
    for (const Move& move : into(placement)) {
      if (found.size() > most) return;
      path.push_back(&move);
      go(move.from);
      path.pop_back();
    }
  };
  for (int placement = 0; placement < size(); ++placement)
    if (complete(placement)) go(placement);
  if (found.size() > most) found.clear();
  return found;
}

std::vector<std::vector<int>> PlacementDag::devices(std::span<const Move* const> path) const {
  std::vector<size_t> taken(kinds_.size(), 0);
  std::vector<std::vector<int>> stages;
  for (const Move* move : path) {
    std::vector<int> stage;
    for (const auto& [kind, count] : move->crew)
      for (int i = 0; i < count; ++i) stage.push_back(kinds_[kind][taken[kind]++]);
    std::sort(stage.begin(), stage.end());
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace antichain
