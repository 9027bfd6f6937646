// The smallest bottleneck is the fastest that the slowest stage can be, over all ways to cut and to place.
//
// It is found by a threshold test and a binary search over whole nanoseconds. For a threshold T one pass over
// the antichain DAG decides which placements can end at which down-set with no stage above T, and with no
// transfer above T where transfers count. A stage from the down-set E to D, by the crew of a move, takes
// (f(D) − f(E)) / r, where f is the work of a down-set at the crew's speed plus its share of the all-reduce.
// Hence
//
//   latest(D, q) = max of f(E) over down-sets E strictly inside D that placement q can end at
//   q's move to p ends at D   when   f(D) − latest(D, q) ≤ r T
//
// It depends on f(E) alone whether some E serves, so the largest decides. A down-set strictly inside D lies
// inside one of those with a node less, so `latest` is a running maximum along the edges, and no pair of
// states is compared.
//
// A memory limit is a second such condition. Then the Pareto front of (f(E), memory of E) decides instead of
// one E: no E in it is beaten in both.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "partition/search/antichain_dag.h"
#include "partition/search/placements.h"

namespace antichain {

// Cuts are S + 1 states of an antichain DAG, from the empty one to the full one. Stage s is what the next
// state adds to states[s], and the crew of moves[s] does it.
struct Cuts {
  std::vector<int> states;
  std::vector<const Move*> moves;
  bool operator==(const Cuts&) const = default;
};

enum class Goal {
  time,            // thresholds are nanoseconds: of a stage, and of a boundary where transfers count
  time_in_memory,  // the same, and every stage fits its devices
  memory,          // thresholds are bytes of a stage: the smallest devices that would do
};

enum class Guess { poor, good };

class BottleneckSearch {
 public:
  BottleneckSearch(const AntichainDag&, const PlacementDag&, const Profile&, const PlanOptions&,
                   Goal = Goal::time);

  // Returns the smallest attainable threshold of [low, high], or −1 when none is. It leaves the search as
  // attainable() of that threshold would. Where `high` is a good guess it looks close below first, so that
  // few tests confirm it.
  int64_t minimum(int64_t low, int64_t high, Guess = Guess::poor);
  bool attainable(int64_t threshold);
  int64_t most() const;  // attainable, if any threshold is

  // Says of the last threshold tested whether the placement can end at this state, and the devices that are
  // left might still have room for the rest.
  bool boundary(int state, int placement) const;
  // Says whether this one stage is within the threshold, the boundary before it included.
  bool fits(int from_state, int to_state, const Move&) const;
  // Returns one solution, if the threshold is attainable. It goes from the back and always takes the first
  // move. Among the move's boundaries it takes the one with the most work, and among equals the last in the
  // state sequence.
  Cuts any_cuts() const;
  // Says whether every stage fits its devices. The search must be one that knows about memory.
  bool within_limits(const Cuts&) const;

  const AntichainDag& dag() const { return dag_; }
  const PlacementDag& placements() const { return placements_; }
  int64_t threshold() const { return threshold_; }
  // A stage that recomputes takes `again_ns` longer.
  int64_t stage_ns(int from_state, int to_state, const Move&, int64_t again_ns = 0) const;
  int64_t boundary_ns(int state, const Move& after) const;  // 0 where transfers do not count
  // Returns false when a Pareto front grew beyond what is kept: then a solution may have been missed.
  bool exact() const { return exact_; }
  int64_t table_entries() const { return int64_t(dag_.states()) * int64_t(gates_.size()); }
  static int64_t table_entries(const AntichainDag&, const PlacementDag&);  // at most

 private:
  // Prices are whole numbers below 2^53, which doubles hold exactly and processors compare several at a time.
  using Prices = std::vector<double>;  // per state

  // A Gate is what the next stage requires of the boundary at which it begins. Moves with the same
  // requirements share one.
  struct Gate {
    int from = 0;
    double crew = 0;  // the capacity of the next stage's devices: ascending within a placement
    int price = 0, memory = 0;
    bool between_nodes = false;
    auto operator<=>(const Gate&) const = default;
  };
  struct GatePrices {
    const double* f = nullptr;            // what the threshold limits: prices, or memory
    const double* transfer_ns = nullptr;  // of the boundary; null where transfers do not count
  };
  struct Terms {  // of one move
    int gate = 0, divisor = 1;
    double memory_limit = 0;    // of all its devices, as memory is
    const double* f = nullptr;  // the gate's
    double most = 0;            // divisor x threshold
  };
  struct Point {
    double price = 0, memory = 0;
  };
  using Front = std::vector<Point>;  // prices descending, memory ascending
  struct Window {                    // of the work of a down-set
    double least = 0, most = 0;
    bool holds(double work) const { return least <= work && work <= most; }
  };

  int price_list(const Profile&, const PlanOptions&, const Move&);
  int memory_list(const PlanOptions&, const Move&);
  void make_gates(const Profile&, const PlanOptions&);
  void price_boundaries(const PlanOptions&);
  void set_threshold(int64_t threshold);
  const Terms& terms_of(const Move& move) const { return terms_[size_t(&move - placements_.moves().data())]; }

  bool allowed(int state, int gate) const;
  bool ends(int state, int placement) const;
  bool pass_on(int state, int first, int last);
  bool pass_fronts_on(int state, int first, int last);
  bool add(Front&, const Point&) const;

  const AntichainDag& dag_;
  const PlacementDag& placements_;
  const Goal goal_;
  const bool transfers_count_;
  bool equal_speeds_ = true, exact_ = true;
  bool own_times_ = true;  // whether all devices' are the network's own, which bounds what they can have done
  int64_t threshold_ = 0, unit_ = 1;
  std::map<std::tuple<int, double, int64_t>, int> price_index_;
  std::map<std::pair<int, int>, int> memory_index_;  // by micro-batches in flight, replicas
  // Transfers have one list within a node and one between nodes; they have none where they do not count.
  std::vector<Prices> prices_, memory_, transfer_ns_;
  std::vector<Gate> gates_;
  std::vector<GatePrices> gate_prices_;
  std::vector<int> gates_begin_;   // per placement, into gates_
  std::vector<Terms> terms_;       // per move
  std::vector<Window> ending_;     // per placement: where its boundaries can matter
  std::vector<double> most_work_;  // per placement: up to where its labels, or those of a weaker one, can
  std::vector<double> latest_;     // states x gates; below zero: no such boundary
  std::vector<Front> fronts_;      // the same, for time_in_memory
  std::vector<double> passing_;    // scratch of pass_on: a row of latest_
};

}  // namespace antichain
