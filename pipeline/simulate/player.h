// A Player executes a schedule in simulated time. Every simulation is its one loop, and differs only in the
// transits that it is given.
//
// A transit is a message, an all-reduce, or a half of one. It begins when all its ends are ready and all its
// queues are free, keeps the queues busy until it is over, and then lets the actions go that wait for it. The
// player carries out one transit after the other, and before each one the actions that its ends need:
//
//                        ends of a message           ends of an all-reduce          queues
//   simulate             the S                       each replica's last backward   links, stages
//   simulate_in_order    the S and a free buffer     the same, for the first half;  lanes of each rank
//                                                    each A, for the second
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "partition/plan/steps.h"
#include "pipeline/schedule/timeline.h"
#include "pipeline/simulate/action_seconds.h"
#include "pipeline/simulate/steady_step.h"

namespace antichain {

// A TransitEnd is ready when the rank's action `needs` ends, or `passed_s` after that action began. It takes
// the queue of the number `queue`, and the action `waits` may end when the transit is over. Each is −1 for
// none.
struct TransitEnd {
  int rank = 0;
  int needs = -1, queue = -1, waits = -1;
  double passed_s = -1;
};

class Player {
 public:
  // Carries out every transit of a step, in an order in which none needs a later one.
  using Transits = std::function<void(Player&)>;

  // Everything must outlive the player.
  Player(const Schedule&, const Plan&, const Cluster&, const ActionSeconds&, Transits);

  // If the actions that wait for the transit are to meet, none starts before it begins, and none is over
  // before the others have come. Such transits have queues of their own.
  void carry_out(std::span<const TransitEnd>, double seconds, bool meet = false);

  // Plays one more step, on the clocks that the one before left behind. Returns when its last action ends.
  double play();
  // Returns the period of further steps. `step_s` is the length of a step that begins on clocks at 0.
  double period_s(double step_s);
  // Plays the first step and, where steps overlap, further ones. The timeline is that of the first step, or
  // of one in the steady state where overlapping gains something.
  Timeline timeline(Steps);

 private:
  // The times of an action. Before it is done, those of its start and end are what they are at least, and
  // there_s is −1 as long as nothing lets it go.
  struct Times {
    double start_s = 0, end_s = 0, there_s = -1;
  };
  double ready_s(const TransitEnd&);
  void go_to(int rank, int index);
  void meet_for_vote();
  Timeline played() const;

  const Schedule& schedule_;
  const Plan& plan_;
  const Cluster& cluster_;
  const ActionSeconds& seconds_;
  const Transits transits_;
  std::vector<double> now_s_;              // per rank
  std::vector<int> next_;                  // per rank: the action to do next
  std::vector<std::vector<Times>> times_;  // per rank and action
  // Per queue: when it is free again. Where transits meet, the clocks of their ranks say the same.
  std::vector<double> free_s_, free_to_meet_s_;
};

}  // namespace antichain
