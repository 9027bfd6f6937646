#include "partition/search/recompute_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"
#include "partition/search/recompute_state.h"

namespace antichain {
namespace {

constexpr int64_t no_budget = std::numeric_limits<int64_t>::max() / 4;
constexpr int halvings = 8;                 // of the budget, for the first ranges of working sets
constexpr int first_units = 4;              // in a range
constexpr int64_t least_effort = 1000;      // per place
constexpr int64_t graphs = 8;               // that effort is enough for
constexpr size_t least_width = 16;          // labels per place
constexpr size_t most_compared = 50;        // labels that may beat one
constexpr int64_t most_points = 2'000'000;  // of all fronts of a graph
constexpr int64_t points_of_effort = 8;     // that take as long as a label
constexpr int64_t comparisons_of_effort = 64;
constexpr size_t most_weights = 8;  // of a graph
constexpr double rounding = 1e-9;   // of sums of doubles

// A Weight says what a path through the states costs: `of_time` times its nanoseconds and `of_byte` times its
// kept bytes of a micro-batch.
struct Weight {
  double of_time = 0, of_byte = 0;
};

// A StateGraph has states before each place and behind the last. Of one that stands for several it has the
// smaller of all bytes, so that what it says of paths is a bound. This is due to Christofides, Mingozzi,
// Toth, "State-space relaxation procedures for the computation of bounds to routing problems", Networks 1981.
struct StateGraph {
  struct State {
    int to[2] = {-1, -1};  // where the place is kept and where it is computed again; −1: nothing good comes
    int64_t kept_bytes[2] = {0, 0};
  };
  std::vector<std::vector<State>> before;
  std::vector<Weight> weights;
  size_t best = 0;                                     // the weight of the best bound
  std::vector<std::vector<std::vector<double>>> rest;  // by weight: of the cheapest path to the end
  // By place and state: kept bytes and nanoseconds of the paths to the end that may be the best. Bytes
  // ascend, and nanoseconds descend.
  using Front = std::vector<std::pair<int64_t, int64_t>>;
  std::vector<std::vector<Front>> fronts;  // may be missing
};

// A Subproblem asks for choices whose largest working set is in a range.
struct Subproblem {
  int64_t floor = 0, ceiling = 0;
  int64_t unit = 0;  // bytes that differ by less may be one state; 0: none may
  size_t width = least_width;
  bool fronts = false;  // whether its graph has them, where they are not too many
  StateGraph graph = {};
  double bound = 0;  // of what is minimised
};

class RecomputeSearch {
 public:
  RecomputeSearch(const StageOrder& order, const RecomputeRequest& request, bool by_time)
      : order_(order),
        request_(request),
        by_time_(by_time),
        steps_(order),
        budget_(request.budget_bytes),
        effort_(std::max(request.effort, least_effort * order.size())),
        given_(effort_) {
    for (const StageOrder::Place& place : order.places)
      ns_.push_back(by_time ? work_ns({.forward_s = place.forward_s}, request.speed) : 0);
  }

  RecomputeFind run() {
    consider(std::vector<bool>(ns_.size()));
    const int64_t budget = budget_;
    std::multimap<double, Subproblem> open;  // by bound
    const auto put = [&](Subproblem made, const StateGraph* parent) {
      if (relax(made, parent)) open.emplace(made.bound, std::move(made));
    };
    for (int half = 0; half <= halvings; ++half)
      put({.floor = half < halvings ? (budget >> (half + 1)) + 1 : 0,
           .ceiling = budget >> half,
           .unit = no_budget},
          nullptr);
    while (!open.empty() && effort_ > 0) {
      const Subproblem next = std::move(open.extract(open.begin()).mapped());
      if (next.bound > most()) break;
      if (search(next)) continue;
      for (Subproblem& part : parts(next)) put(std::move(part), &next.graph);
    }
    return {best_, open.empty() || open.begin()->first > most(), given_ - effort_};
  }

 private:
  // A Label is a choice up to a place, which leads to a state.
  struct Label {
    int64_t ns = 0, kept = 0, most = 0;  // `most` is the largest working set so far
    double rank = 0;
    int before = -1;  // the label of the place before
    int state = 0;
    bool again = false;
  };
  struct Reached {
    RecomputeState state;
    int in_graph = 0;
    int kind = 0;  // the same where states differ in bytes alone
  };
  // A Front has the states behind a place. Those that differ by less than `unit` bytes are one.
  struct Front {
    int64_t unit = 1;
    std::vector<Reached> states;
    std::unordered_map<std::string, int> kinds, known;

    int kind_of(const std::string& key) { return kinds.try_emplace(key, int(kinds.size())).first->second; }
    // Returns its number, and whether it is new.
    std::pair<int, bool> add(RecomputeState state, int in_graph) {
      std::string key = state.key();
      const int kind = kind_of(key);
      if (unit < no_budget) state.write_bytes(unit, key);
      key.append(reinterpret_cast<const char*>(&in_graph), sizeof in_graph);
      const auto [same, fresh] = known.try_emplace(std::move(key), int(states.size()));
      if (fresh)
        states.push_back({std::move(state), in_graph, kind});
      else
        states[size_t(same->second)].state.meet(state);
      return {same->second, fresh};
    }
  };
  struct Way {
    int to = -1;  // none
    RecomputeStep step = {};
  };

  // What is minimised has to be at most this.
  double most() const { return by_time_ ? double(most_ns_) : double(budget_); }
  // Returns a bound on what is minimised, given the weight of a whole path and its largest working set.
  double bound(const Weight& weight, double total, int64_t working) const {
    if (!by_time_) return request_.in_flight * total + double(working);
    return total - weight.of_byte * double(budget_ - working) / request_.in_flight;
  }
  // Whether a path with these kept bytes at least fits.
  bool fits(double kept, int64_t working) const {
    return request_.in_flight * kept + double(working) <= double(budget_);
  }
  bool good(const Weight& weight, double total, int64_t working) const {
    if (weight.of_time == 0) return fits(total, working);
    return bound(weight, total, working) * (1 - rounding) <= double(most_ns_);
  }

  // Makes the graph of a subproblem, of what its parent's has left, and finds its bound. Returns whether it
  // may have something better.
  bool relax(Subproblem& made, const StateGraph* parent) {
    if (by_time_ && made.unit == 0) {
      if (!merge_beaten(made, *parent)) return true;
    } else {
      merge_near(made, parent);
    }
    return find_weights(made) && (!made.fronts || find_fronts(made));
  }

  // States of one have the same state of the parent's. Where a place has many, those that come later and
  // differ in bytes alone are one.
  void merge_near(Subproblem& made, const StateGraph* parent) {
    const size_t weights = parent ? parent->weights.size() : 0;
    Front front;
    front.add(steps_.first(), 0);
    // By state and weight of the parent: of the cheapest path from the beginning.
    std::vector<std::vector<double>> come = {std::vector<double>(weights)};
    std::vector<double> comes(weights);
    made.graph.before = {{{}}};
    size_t states = 1;
    const size_t most_states = size_t(std::max<int64_t>(given_ / (graphs * order_.size()), least_width));
    for (int i = 0; i <= order_.size(); ++i) {
      Front next{.unit = std::max<int64_t>(1, made.unit)};
      std::vector<std::vector<double>> come_next;
      for (size_t s = 0; s < front.states.size(); ++s)
        for (const bool again : {false, true}) {
          if (again && (i == order_.size() || !order_.places[size_t(i)].computes)) continue;
          const Reached& from = front.states[s];
          const int in_parent = parent ? parent->before[size_t(i)][size_t(from.in_graph)].to[again] : 0;
          if (in_parent < 0) continue;
          RecomputeState state = from.state;
          const RecomputeStep step = steps_.step(state, i, again, made.floor);
          if (step.working_bytes > made.ceiling) continue;
          bool may = true;
          for (size_t w = 0; w < weights && may; ++w) {
            const Weight& weight = parent->weights[w];
            comes[w] = come[s][w] + cost(weight, i, again, step.kept_bytes);
            may = good(weight, comes[w] + parent->rest[w][size_t(i) + 1][size_t(in_parent)], made.floor);
          }
          if (!may) continue;
          if (next.states.size() >= most_states) next.unit = no_budget;
          if (next.states.size() >= 2 * most_states) state = steps_.easiest(i + 1);
          const auto [to, fresh] = next.add(std::move(state), in_parent);
          if (fresh) come_next.push_back(comes);
          for (size_t w = 0; w < weights; ++w)
            come_next[size_t(to)][w] = std::min(come_next[size_t(to)][w], comes[w]);
          StateGraph::State& its = made.graph.before[size_t(i)][s];
          its.to[again] = to, its.kept_bytes[again] = step.kept_bytes;
        }
      front = std::move(next), come = std::move(come_next);
      effort_ -= int64_t(front.states.size());
      states += front.states.size();
      made.graph.before.emplace_back(front.states.size());
    }
    made.width = std::max(made.width, states / ns_.size());
  }

  // Merges a state into one that beats it and that a cheaper path leads to, by the weight of the parent's
  // best bound. All numbers are exact, so the bound by this weight is that of Lagrange. Paths that are too
  // dear by it are left out, but not those that are by others: the path that a state was merged into may be
  // dearer by these. Returns whether the effort was enough.
  bool merge_beaten(Subproblem& made, const StateGraph& parent) {
    struct Next {
      RecomputeState state;
      int in_parent = 0, from = 0;
      bool again = false;
      int64_t kept_bytes = 0;
      double come = 0;  // of the cheapest path from the beginning
    };
    const Weight& weight = parent.weights[parent.best];
    const std::vector<std::vector<double>>& rest = parent.rest[parent.best];
    Front front;
    front.add(steps_.first(), 0);
    std::vector<double> come = {0};
    made.graph.before = {{{}}};
    size_t states = 1;
    for (int i = 0; i <= order_.size(); ++i) {
      std::vector<Next> all;
      for (size_t s = 0; s < front.states.size(); ++s)
        for (const bool again : {false, true}) {
          const Reached& from = front.states[s];
          const int in_parent = parent.before[size_t(i)][size_t(from.in_graph)].to[again];
          if (in_parent < 0) continue;
          Next next{.state = from.state, .in_parent = in_parent, .from = int(s), .again = again};
          const RecomputeStep step = steps_.step(next.state, i, again, made.floor);
          if (step.working_bytes > made.ceiling) continue;
          next.kept_bytes = step.kept_bytes;
          next.come = come[s] + cost(weight, i, again, step.kept_bytes);
          if (good(weight, next.come + rest[size_t(i) + 1][size_t(in_parent)], made.floor))
            all.push_back(std::move(next));
        }
      std::ranges::stable_sort(all, {}, &Next::come);
      front = {}, come.clear();
      std::vector<std::vector<int>> alike;  // by kind
      int64_t compared = 0;
      for (Next& next : all) {
        if (compared / comparisons_of_effort > effort_) return effort_ = 0, false;
        const int kind = front.kind_of(next.state.key());
        alike.resize(front.kinds.size());
        std::vector<int>& known = alike[size_t(kind)];
        const auto beating = std::ranges::find_if(
            known, [&](int s) { return ++compared, front.states[size_t(s)].state.beats(next.state); });
        const int to = beating == known.end() ? int(front.states.size()) : *beating;
        if (beating == known.end()) {
          known.push_back(to);
          front.states.push_back({std::move(next.state), next.in_parent, kind});
          come.push_back(next.come);
        }
        StateGraph::State& its = made.graph.before[size_t(i)][size_t(next.from)];
        its.to[next.again] = to, its.kept_bytes[next.again] = next.kept_bytes;
      }
      effort_ -= int64_t(front.states.size()) + compared / comparisons_of_effort;
      if (effort_ <= 0) return false;
      states += front.states.size();
      made.graph.before.emplace_back(front.states.size());
    }
    made.width = std::max(made.width, states / ns_.size());
    return true;
  }

  double cost(const Weight& weight, int i, bool again, int64_t kept_bytes) const {
    return weight.of_time * (again ? double(ns_[size_t(i)]) : 0) + weight.of_byte * double(kept_bytes);
  }

  // Returns, by place and state, what the cheapest path from the beginning costs.
  std::vector<std::vector<double>> cheapest_to(const StateGraph& graph, const Weight& weight) const {
    std::vector<std::vector<double>> come;
    for (const std::vector<StateGraph::State>& place : graph.before)
      come.emplace_back(place.size(), double(no_budget));
    come[0][0] = 0;
    for (int i = 0; i <= order_.size(); ++i)
      for (size_t s = 0; s < graph.before[size_t(i)].size(); ++s)
        for (const bool again : {false, true}) {
          const StateGraph::State& state = graph.before[size_t(i)][s];
          if (state.to[again] < 0) continue;
          double& its = come[size_t(i) + 1][size_t(state.to[again])];
          its = std::min(its, come[size_t(i)][s] + cost(weight, i, again, state.kept_bytes[again]));
        }
    return come;
  }

  // Finds the fronts of a graph, where they are not too many points. Returns whether it may have something
  // better.
  bool find_fronts(Subproblem& made) {
    StateGraph& graph = made.graph;
    std::vector<std::vector<std::vector<double>>> come;  // by weight
    for (const Weight& weight : graph.weights) come.push_back(cheapest_to(graph, weight));
    std::vector<std::vector<StateGraph::Front>> fronts(graph.before.size());
    fronts.back() = {graph.before.back().size(), StateGraph::Front{{0, 0}}};
    int64_t points = 0;
    for (size_t i = graph.before.size() - 1; i-- > 0;)
      for (size_t s = 0; s < graph.before[i].size(); ++s) {
        const StateGraph::State& state = graph.before[i][s];
        StateGraph::Front all, best;
        for (const bool again : {false, true}) {
          if (state.to[again] < 0) continue;
          for (const auto& [kept_behind, ns_behind] : fronts[i + 1][size_t(state.to[again])]) {
            const int64_t kept = kept_behind + state.kept_bytes[again], ns = ns_behind + (again ? ns_[i] : 0);
            bool may = true;
            for (size_t w = 0; w < come.size() && may; ++w) {
              const Weight& weight = graph.weights[w];
              const double total = weight.of_time * double(ns) + weight.of_byte * double(kept);
              may = good(weight, come[w][i][s] + total, made.floor);
            }
            if (may) all.emplace_back(kept, ns);
          }
        }
        std::ranges::sort(all);
        for (const auto& point : all)
          if (best.empty() || point.second < best.back().second) best.push_back(point);
        points += int64_t(best.size());
        fronts[i].push_back(std::move(best));
        if (points > most_points) {
          effort_ -= points / points_of_effort;
          return true;
        }
      }
    effort_ -= points / points_of_effort;
    graph.fronts = std::move(fronts);
    const int64_t kept = (budget_ - made.floor) / request_.in_flight;
    made.bound = std::max(made.bound, double(least_ns(graph.fronts[0][0], kept)));
    return made.bound <= most();
  }

  // Returns the least time of those that keep no more.
  static int64_t least_ns(const StateGraph::Front& front, int64_t kept) {
    const auto more =
        std::ranges::upper_bound(front, kept, {}, [](const auto& point) { return point.first; });
    return more == front.begin() ? no_budget : std::prev(more)->second;
  }

  // Adds the cheapest paths by a weight, and considers the one from the beginning. Returns its nanoseconds
  // and bytes.
  std::pair<int64_t, int64_t> weigh(StateGraph& graph, const Weight& weight) {
    std::vector<std::vector<double>> rest(graph.before.size());
    rest.back().resize(graph.before.back().size());
    const auto value = [&](size_t i, size_t s, bool again) {
      const StateGraph::State& state = graph.before[i][s];
      if (state.to[again] < 0) return double(no_budget);
      return rest[i + 1][size_t(state.to[again])] + cost(weight, int(i), again, state.kept_bytes[again]);
    };
    for (size_t i = graph.before.size() - 1; i-- > 0;)
      for (size_t s = 0; s < graph.before[i].size(); ++s)
        rest[i].push_back(std::min(value(i, s, false), value(i, s, true)));
    std::pair<int64_t, int64_t> cost(no_budget, no_budget);
    if (rest[0][0] < double(no_budget)) {
      cost = {};
      std::vector<bool> choice(ns_.size());
      for (size_t i = 0, s = 0; i + 1 < graph.before.size(); ++i) {
        const bool again = value(i, s, true) < value(i, s, false);
        if (again) choice[i] = true, cost.first += ns_[i];
        cost.second += graph.before[i][s].kept_bytes[again];
        s = size_t(graph.before[i][s].to[again]);
      }
      consider(std::move(choice));
    }
    graph.weights.push_back(weight);
    graph.rest.push_back(std::move(rest));
    return cost;
  }

  // Finds the price of a byte that gives the best bound: Handler, Zang, "A Dual Algorithm for the Constrained
  // Shortest Path Problem", Networks 1980.
  bool find_weights(Subproblem& made) {
    StateGraph& graph = made.graph;
    if (graph.before.back().empty()) return false;
    auto [slow_ns, least] = weigh(graph, {0, 1});
    if (least == no_budget || !fits(double(least), made.floor)) return false;
    if (!by_time_) {
      made.bound = bound({0, 1}, double(least), made.floor);
      return true;
    }
    auto [fast_ns, most] = weigh(graph, {1, 0});
    made.bound = double(fast_ns), graph.best = 1;
    while (!fits(double(most), made.floor) && graph.weights.size() < most_weights) {
      const double price = double(slow_ns - fast_ns) / double(most - least);
      const auto [ns, kept] = weigh(graph, {1, price});
      const double total = double(ns) + price * double(kept);
      if (const double its = bound({1, price}, total, made.floor); its >= made.bound)
        made.bound = its, graph.best = graph.weights.size() - 1;
      if (total >= double(fast_ns) + price * double(most) - 1) break;
      fits(double(kept), made.floor) ? std::tie(slow_ns, least) = std::tie(ns, kept)
                                     : std::tie(fast_ns, most) = std::tie(ns, kept);
    }
    made.bound *= 1 - rounding;
    return made.bound <= double(most_ns_);
  }

  // Looks for something better. Returns whether nothing was left out.
  bool search(const Subproblem& in) {
    std::vector<std::vector<Label>> labels = {{{}}};
    Front front;
    front.add(steps_.first(), 0);
    bool complete = true;
    for (int i = 0; i <= order_.size(); ++i) {
      Front behind;
      std::vector<std::array<std::optional<Way>, 2>> ways(front.states.size());
      std::vector<Label> next;
      for (size_t l = 0; l < labels.back().size(); ++l)
        for (const bool again : {false, true}) {
          const Label& label = labels.back()[l];
          std::optional<Way>& way = ways[size_t(label.state)][again];
          if (!way) way = go(front.states[size_t(label.state)], in, i, again, behind);
          if (way->to < 0) continue;
          Label made{.ns = label.ns + (again ? ns_[size_t(i)] : 0),
                     .kept = label.kept + way->step.kept_bytes,
                     .most = std::max(label.most, way->step.working_bytes),
                     .before = int(l),
                     .state = way->to,
                     .again = again};
          if (promises(made, in, i + 1, behind.states[size_t(way->to)].in_graph)) next.push_back(made);
        }
      effort_ -= int64_t(next.size());
      complete &= thin_out(next, behind, in);
      labels.push_back(std::move(next));
      front = std::move(behind);
    }
    take_best(labels, in);
    return complete;
  }

  Way go(const Reached& from, const Subproblem& in, int i, bool again, Front& behind) const {
    const int in_graph = in.graph.before[size_t(i)][size_t(from.in_graph)].to[again];
    if (in_graph < 0) return {};
    RecomputeState state = from.state;
    const RecomputeStep step = steps_.step(state, i, again, in.floor);
    if (step.working_bytes > in.ceiling) return {};
    return {behind.add(std::move(state), in_graph).first, step};
  }

  bool promises(Label& label, const Subproblem& in, int next, int in_graph) const {
    const int64_t working = std::max(label.most, in.floor);
    for (size_t w = 0; w < in.graph.weights.size(); ++w) {
      const Weight& weight = in.graph.weights[w];
      const double total = weight.of_time * double(label.ns) + weight.of_byte * double(label.kept) +
                           in.graph.rest[w][size_t(next)][size_t(in_graph)];
      if (!good(weight, total, working)) return false;
      if (weight.of_time > 0 || !by_time_) label.rank = std::max(label.rank, bound(weight, total, working));
    }
    if (in.graph.fronts.empty()) return true;
    const int64_t kept = (budget_ - working) / request_.in_flight - label.kept,
                  ns = label.ns + least_ns(in.graph.fronts[size_t(next)][size_t(in_graph)], kept);
    label.rank = std::max(label.rank, double(ns));
    return ns <= most_ns_;
  }

  // Drops labels that are beaten, and, where there are too many, those that promise least.
  bool thin_out(std::vector<Label>& labels, const Front& front, const Subproblem& in) const {
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return std::pair(a.rank, a.kept) < std::pair(b.rank, b.kept);
    });
    std::vector<std::vector<size_t>> known(front.kinds.size());
    std::vector<Label> left;
    for (const Label& label : labels) {
      const Reached& its = front.states[size_t(label.state)];
      std::vector<size_t>& alike = known[size_t(its.kind)];
      if (std::ranges::any_of(alike, [&](size_t l) {
            const Label& other = left[l];
            return other.ns <= label.ns && other.kept <= label.kept &&
                   other.most <= std::max(label.most, in.floor) &&
                   (other.state == label.state || front.states[size_t(other.state)].state.beats(its.state));
          }))
        continue;
      if (left.size() == in.width) {
        labels = std::move(left);
        return false;
      }
      if (alike.size() < most_compared) alike.push_back(left.size());
      left.push_back(label);
    }
    labels = std::move(left);
    return true;
  }

  void take_best(const std::vector<std::vector<Label>>& labels, const Subproblem& in) {
    const std::vector<Label>& ends = labels.back();
    const auto best = std::ranges::min_element(ends, {}, [&](const Label& label) {
      return std::pair(label.ns, request_.in_flight * label.kept + std::max(label.most, in.floor));
    });
    if (best == ends.end()) return;
    std::vector<bool> again(ns_.size());
    const Label* label = &*best;
    for (size_t i = labels.size() - 1; i > 0; --i) {
      if (i <= ns_.size()) again[i - 1] = label->again;
      label = &labels[i - 1][size_t(label->before)];
    }
    const WorkingSet set = consider(std::move(again));
    ANTICHAIN_CHECK(
        set.kept_bytes == best->kept && std::max(set.again_bytes, in.floor) == std::max(best->most, in.floor),
        "the search and the formula of memory agree");
  }

  // Takes a choice where it fits and is better than the best so far.
  WorkingSet consider(std::vector<bool> again) {
    RecomputeChoice choice{.again = std::move(again)};
    choice.set = working_set(order_, choice.again);
    choice.bytes = request_.in_flight * choice.set.kept_bytes + choice.set.again_bytes;
    for (size_t i = 0; i < ns_.size(); ++i)
      if (choice.again[i]) choice.ns += ns_[i];
    const WorkingSet set = choice.set;
    if (choice.bytes > budget_ || choice.ns > most_ns_) return set;
    by_time_ ? most_ns_ = choice.ns - 1 : budget_ = choice.bytes - 1;
    best_ = std::move(choice);
    return set;
  }

  // Divides a subproblem's range where that brings bounds closer, or else tells more states apart.
  std::vector<Subproblem> parts(const Subproblem& of) const {
    Subproblem part{
        .floor = of.floor, .ceiling = std::min(of.ceiling, budget_), .unit = of.unit, .width = of.width};
    const double wide = double(part.ceiling - part.floor);
    const double rise = by_time_ ? of.graph.weights.back().of_byte * wide / request_.in_flight : wide;
    if (part.ceiling > part.floor && rise > std::min(most() - of.bound, of.bound) / 6) {
      Subproblem other = part;
      part.ceiling = part.floor + (part.ceiling - part.floor) / 2;
      other.floor = part.ceiling + 1;
      return {part, other};
    }
    part.width *= 2;
    part.fronts = by_time_ && of.unit == 0;
    part.unit = by_time_ ? 0 : of.unit == no_budget ? of.ceiling / first_units : of.unit / 4;
    return {part};
  }

  const StageOrder& order_;
  const RecomputeRequest& request_;
  const bool by_time_;
  const RecomputeSteps steps_;
  int64_t budget_ = 0, most_ns_ = no_budget;
  int64_t effort_ = 0, given_ = 0;  // what is left of it, and what there was
  std::vector<int64_t> ns_;         // by place, of its forward
  std::optional<RecomputeChoice> best_;
};

}  // namespace

RecomputeFind least_time(const StageOrder& order, const RecomputeRequest& request) {
  RecomputeFind found = RecomputeSearch(order, request, true).run();
  if (found.choice || found.exact) return found;
  const RecomputeFind fewest = least_bytes(order, request);
  found.labels += fewest.labels;
  found.exact = fewest.exact;
  if (fewest.choice->bytes > request.budget_bytes) return found;
  RecomputeChoice& choice = found.choice.emplace(*fewest.choice);
  for (size_t i = 0; i < choice.again.size(); ++i)
    if (choice.again[i]) choice.ns += work_ns({.forward_s = order.places[i].forward_s}, request.speed);
  found.exact = false;
  return found;
}

RecomputeFind least_bytes(const StageOrder& order, const RecomputeRequest& request) {
  RecomputeRequest any = request;
  any.budget_bytes = no_budget;
  return RecomputeSearch(order, any, false).run();
}

std::vector<int> RecomputeChoice::of(const std::vector<int>& nodes) const {
  std::vector<int> chosen;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (again[i]) chosen.push_back(nodes[i]);
  return chosen;
}

}  // namespace antichain
