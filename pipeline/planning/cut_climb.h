// A CutClimb is a local search over cuts. It moves boundaries to neighbouring states of the antichain DAG,
// one or two at a time, and stages to other devices, as long as the step gets shorter.
//
// That ends where no single move helps, so it also wanders: random moves are taken unless they make the step
// longer by more than a threshold that shrinks to nothing (G. Dueck and T. Scheuer, "Threshold Accepting",
// Journal of Computational Physics 1990).
//
// Budgets are counted in CutScorer::spent(), not in seconds, and the random numbers come from a fixed seed.
// So the result is the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/planning/cut_scorer.h"

namespace antichain {

struct ScoredCuts {
  Cuts cuts;
  Score score;
};

class CutClimb {
 public:
  explicit CutClimb(CutScorer&);  // keeps a reference

  // Returns the best that descending from here comes to, within the budget.
  ScoredCuts climb(const ScoredCuts& start, int64_t budget);
  // Returns the best of a walk from here, and of descending from it.
  ScoredCuts wander(const ScoredCuts& start, int64_t budget);
  // Moves at most so many neighbouring boundaries by equally many nodes, at random.
  void shift(Cuts&, uint64_t boundaries);

 private:
  bool improve_state(ScoredCuts&, size_t boundary, int64_t end);
  bool improve_two_states(ScoredCuts&, size_t boundary, int64_t end);
  bool improve_devices(ScoredCuts&, size_t stage, int64_t end);
  bool take_if_easier(ScoredCuts&, const Cuts&);

  std::span<const int> before(int state) const;
  std::vector<int> near(int state) const;               // one node more or less
  std::vector<int> far(int state) const;                // several
  std::vector<int> narrow(int state, int count) const;  // so many narrow places on either side
  std::vector<int> for_pairs(int state) const;
  std::vector<int> between(int from, int to) const;

  // A Change puts a stage and the next one on other devices, or makes them one stage, or makes two of one
  // stage.
  struct Change {
    size_t stages = 1;  // that are changed
    const Move *first = nullptr, *second = nullptr;
    int state = 0;  // between first and second
  };
  std::vector<Change> other_devices(const Cuts&, size_t stage) const;
  static void apply(const Change&, size_t stage, Cuts&);

  void jump(Cuts&);
  int somewhere_near(int state);
  int after_steps(int state, bool more, uint64_t steps);

  CutScorer& score_;
  const AntichainDag& dag_;
  const PlacementDag& placements_;
  const bool choice_;                  // whether there is more than one way to place
  std::vector<int64_t> before_begin_;  // states + 1, into before_
  std::vector<int> before_;            // the states with one node less
  std::vector<int> narrow_;            // states at which no more bytes cross than at any neighbour
  uint64_t random_ = 0;
};

}  // namespace antichain
