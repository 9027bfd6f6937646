#include "pipeline/planning/round_trip_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace antichain {
namespace {

// The bound is found to these shares of it: where down-sets are few, and where they are many.
constexpr double fine = 5e-4, coarse = 4e-3;
constexpr int few_down_sets = 20'000;
constexpr int64_t most_visits = 40'000'000;  // of down-sets, by all tests together
constexpr int most_classes = 24;             // of first stages
constexpr int tests_of_a_period = 14;        // that a bisection takes at most
constexpr double most_ns = 1e18;             // that is added up
constexpr int64_t no_bound_ns = std::numeric_limits<int64_t>::max() / 4;
constexpr int64_t nothing_ns = std::numeric_limits<int64_t>::min() / 4;

// A time is rounded down, because sums of it are to stay below the sum of the times.
int64_t whole_ns(double seconds) { return int64_t(std::floor(seconds * 1e9)); }

// RoundTripBound has the sums and waits of every down-set, in nanoseconds.
class RoundTripBound {
 public:
  RoundTripBound(const Profile& profile, const PlanOptions& options, const AntichainDag& dag)
      : profile_(profile), dag_(dag), M_(options.microbatches), stages_(options.stages) {
    const CutGraph& graph = dag.graph();
    const size_t nodes = size_t(graph.size());
    std::vector<int64_t> load(nodes), idle(nodes), way(nodes), last(nodes);
    both_.resize(nodes);
    for (size_t n = 0; n < nodes; ++n) {
      int64_t f = 0, i = 0, w = 0, u = 0;
      for (const int member : graph.nodes[n]) {
        const NodeCost& cost = profile.nodes[size_t(member)].cost;
        f += whole_ns(cost.forward_s), i += whole_ns(cost.backward_input_s);
        w += whole_ns(cost.backward_weight_s), u += whole_ns(cost.update_s);
      }
      load[n] = M_ * (f + i + w) + u;
      idle[n] = load[n] - (M_ - 1) * f;
      both_[n] = f + i;
      way[n] = M_ * both_[n];
      last[n] = w + u;
    }
    load_ = dag.sums(load), idle_ = dag.sums(idle), way_ = dag.sums(way), last_ = dag.sums(last);
    both_of_ = dag.sums(both_);
    overhead_ns_ = whole_ns(profile.overhead_s);
    find_waists();
    find_ways();
    list_classes();
  }

  // Says whether there may be a plan with a period of at most T.
  bool possible(int64_t T) {
    return std::ranges::any_of(classes_, [&](const Class& c) {
      return possible(T, c, true, trip_) || possible(T, c, false, trip_of_stages_);
    });
  }
  int64_t in_one_stage_ns() const { return load_[size_t(dag_.full())] + 2 * M_ * overhead_ns_; }

 private:
  // A Class has the first stages with about the same weight halves and updates, which follow the last way
  // back.
  struct Class {
    int64_t least = 0, below = 0;
  };
  // Best has the best for each bound over the down-sets at which a stage may begin.
  struct Best {
    int64_t load = nothing_ns, idle = nothing_ns, way = nothing_ns;
    // `missing` is the most of all that is before a stage that can be missing on the way to where it begins:
    // the stages without a waist. `beside` is the same less all that is before.
    int64_t missing = nothing_ns, beside = nothing_ns;
    void take(const Best& other) {
      load = std::max(load, other.load), idle = std::max(idle, other.idle), way = std::max(way, other.way);
      missing = std::max(missing, other.missing), beside = std::max(beside, other.beside);
    }
  };
  // A Layer of a test says where stages so far may end, and has the best beginnings inside each state.
  struct Layer {
    // These are what is missing, as in Best, at the states where a stage ends, and nothing_ns at all others.
    std::vector<int64_t> reached, now;
    std::vector<Best> within_module;
    Best before_waist;
  };

  // A waist is a node that every other node is before or after. Its down-set is the only one of its size, and
  // has one maximal node. All states of larger size hold it.
  void find_waists() {
    const size_t states = size_t(dag_.states());
    const std::vector<int64_t> size = dag_.sums(std::vector<int64_t>(both_.size(), 1));
    std::vector<int> maximal(states, 0);
    for (size_t s = 0; s < states; ++s)
      for (const int next : dag_.next(int(s))) ++maximal[size_t(next)];
    waist_.assign(states, false);
    for (size_t s = 1; s < states; ++s)
      waist_[s] = maximal[s] == 1 && size[s - 1] < size[s] && (s + 1 == states || size[s] < size[s + 1]);
    one_source_ = dag_.next(dag_.empty()).size() == 1;
    every_gradient_ = true;
    for (size_t n = 0; n < both_.size(); ++n)
      for (const int to : dag_.graph().consumers[n])
        every_gradient_ = every_gradient_ && sends_back(size_t(to), n);
  }

  // Says whether a node sends a gradient back to one of its inputs. Each may be several of the profile's
  // nodes.
  bool sends_back(size_t from, size_t to) const {
    const std::vector<int>& inputs = dag_.graph().nodes[to];
    return std::ranges::any_of(dag_.graph().nodes[from], [&](int n) {
      return std::ranges::any_of(profile_.nodes[size_t(n)].inputs, [&](int input) {
        return profile_.nodes[size_t(input)].needs_gradient && std::ranges::count(inputs, input) > 0;
      });
    });
  }

  // Finds the longest ways of nodes, each of which sends its output there and needs a gradient back.
  void find_ways() {
    const CutGraph& graph = dag_.graph();
    const size_t nodes = both_.size(), states = size_t(dag_.states());
    std::vector<int64_t> before(nodes, nothing_ns), after(nodes, 0), number(nodes);
    for (size_t n = 0; n < nodes; ++n) {
      number[n] = int64_t(n);
      if (graph.inputs[n].empty() && one_source_) before[n] = 0;
      for (const int from : graph.inputs[n])
        if (sends_back(n, size_t(from)) && before[size_t(from)] != nothing_ns)
          before[n] = std::max(before[n], before[size_t(from)] + both_[size_t(from)]);
    }
    for (size_t n = nodes; n-- > 0;)
      for (const int to : graph.consumers[n])
        if (sends_back(size_t(to), n)) after[n] = std::max(after[n], both_[size_t(to)] + after[size_t(to)]);
    const std::vector<int64_t> number_of = dag_.sums(number);
    fill_.assign(states, no_bound_ns), trip_.assign(states, no_bound_ns);
    for (size_t s = 0; s < states; ++s)
      for (const int next : dag_.next(int(s))) {
        const size_t n = size_t(number_of[size_t(next)] - number_of[s]);  // the node that is added
        fill_[s] = std::min(fill_[s], before[n]);
        trip_[size_t(next)] = std::min(trip_[size_t(next)], after[n]);
      }
    // Where every stage holds a waist, all stages beyond a stage need it.
    trip_of_stages_ = trip_;
    for (size_t s = 0; s < states && every_gradient_; ++s) trip_of_stages_[s] = both_of_.back() - both_of_[s];
  }

  void list_classes() {
    const int64_t of_a_test = int64_t(stages_) * dag_.states();
    const int classes =
        int(std::clamp<int64_t>(most_visits / tests_of_a_period / of_a_test, 1, most_classes));
    std::vector<int64_t> sorted(last_.begin() + 1, last_.end());
    std::ranges::sort(sorted);
    for (int c = 0; c < classes; ++c) {
      // First stages are short, so the classes with little to do at last are narrow.
      const double share = double(c) / classes;
      const int64_t least = sorted[size_t(double(sorted.size()) * share * share / 2)];
      if (!classes_.empty() && classes_.back().least == least) continue;
      if (!classes_.empty()) classes_.back().below = least;
      classes_.push_back({least, sorted.back() + 1});
    }
  }

  // Says whether a stage may end at the state. Overheads are those of its M forwards and M backwards.
  bool within(size_t to, const Best& from, int64_t T, int64_t trip, int64_t last) const {
    const int64_t o = overhead_ns_;
    return from.load != nothing_ns && load_[to] + 2 * M_ * o - from.load <= T &&
           idle_[to] + trip + (M_ + 1) * o - from.idle <= T && way_[to] + 2 * M_ * o + last - from.way <= T;
  }
  Best beginning(size_t state, int64_t missing) const {
    const int64_t fill = std::max(fill_[state], both_of_[state] - missing);
    return {load_[state], idle_[state], way_[state] - fill, missing, missing - both_of_[state]};
  }

  // Returns the first state at which a stage ends in any of so many layers, or the number of states.
  size_t first_reached(size_t layers) const {
    size_t first = size_t(dag_.states());
    for (size_t l = 0; l < layers; ++l) {
      const std::vector<int64_t>& reached = layers_[l].reached;
      const auto at = std::ranges::find_if(reached, [](int64_t missing) { return missing != nothing_ns; });
      first = std::min(first, size_t(at - reached.begin()));
    }
    return first;
  }

  // `without` says which cuts the test is about: those of which some stage holds no waist, or the others.
  bool possible(int64_t T, const Class& first, bool without, const std::vector<int64_t>& trip) {
    const size_t states = size_t(dag_.states()), full = size_t(dag_.full());
    const size_t count = without ? 2 : 1;  // layers: in the second some stage so far holds no waist
    for (size_t l = 0; l < count; ++l) layers_[l].reached.assign(states, nothing_ns);
    layers_[0].reached[0] = one_source_ && every_gradient_ ? 0 : no_bound_ns;
    for (int stage = 0; stage < stages_; ++stage) {
      for (size_t l = 0; l < count; ++l) {
        layers_[l].now.assign(states, nothing_ns);
        layers_[l].within_module.assign(states, {});
        layers_[l].before_waist = {};
      }
      for (size_t s = first_reached(count); s < states; ++s) {
        const bool fits = stage > 0 || (last_[s] >= first.least && last_[s] < first.below);
        for (size_t l = 0; l < count; ++l) {
          Layer& layer = layers_[l];
          Best& inside = layer.within_module[s];
          if (waist_[s]) layer.before_waist.take(inside), inside = {};
          if (fits && within(s, layer.before_waist, T, trip[s], first.least))
            layer.now[s] = std::max(layer.now[s], layer.before_waist.missing);
          if (fits && without && within(s, inside, T, trip[s], first.least))
            layers_[1].now[s] = std::max(layers_[1].now[s], inside.beside + both_of_[s]);
          if (layer.reached[s] != nothing_ns) inside.take(beginning(s, layer.reached[s]));
          if (load_[s] - inside.load > T) continue;  // no stage from there ends here or beyond
          for (const int next : dag_.next(int(s))) layer.within_module[size_t(next)].take(inside);
        }
      }
      for (size_t l = 0; l < count; ++l) std::swap(layers_[l].reached, layers_[l].now);
      if (layers_[count - 1].reached[full] != nothing_ns) return true;
    }
    return false;
  }

  const Profile& profile_;
  const AntichainDag& dag_;
  const int64_t M_;
  const int stages_;
  int64_t overhead_ns_ = 0;
  bool one_source_ = false, every_gradient_ = false;
  std::vector<int64_t> both_;  // by node: forward and input half
  // By state, over its down-set.
  std::vector<int64_t> load_, idle_, way_, last_, both_of_, fill_, trip_, trip_of_stages_;
  std::vector<char> waist_;
  std::vector<Class> classes_;
  Layer layers_[2];
};

}  // namespace

double round_trip_bound_s(const Profile& profile, const PlanOptions& options, const AntichainDag& dag,
                          double known_s) {
  double in_all_s = 0;
  for (const ProfileNode& node : profile.nodes) in_all_s += node.cost.compute_s() + node.cost.update_s;
  if (options.microbatches * in_all_s * 1e9 > most_ns) return known_s;
  const double precision = dag.states() <= few_down_sets ? fine : coarse;
  RoundTripBound trips(profile, options, dag);
  int64_t low = whole_ns(known_s), high = trips.in_one_stage_ns();  // which is possible
  if (low >= high || trips.possible(low + int64_t(double(low) * precision))) return known_s;
  // It is likely to be little above what is known.
  for (int64_t step = std::max(low / 8, high / 64 + 1); low + step < high; low += step)
    if (trips.possible(low + step)) {
      high = low + step;
      break;
    }
  while (high - low > 1 && double(high - low) > precision * double(low)) {
    const int64_t middle = low + (high - low) / 2;
    (trips.possible(middle) ? high : low) = middle;
  }
  return double(low) * 1e-9;
}

}  // namespace antichain
