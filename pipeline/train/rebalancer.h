// A Rebalancer decides when a run goes over to another plan. It compares what each rank's own computing takes
// with what the plan predicts: that is the rank's present speed. Where speeds are persistently others than
// those planned for, it has the network planned anew, and moves if that pays. Afterwards it measures what the
// move has brought, and takes it back if that is nothing.
//
// Others have moved layers between ranks by measured times before (Geng, Li and Wang, "ElasticPipe: An
// Efficient and Dynamic Model-Parallel Solution to DNN Training", ScienceCloud 2019). Here the exact planner
// says which.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/train/trainer.h"

namespace antichain {

// The rule, in numbers. A move has to
//
//   * be for ranks whose speed, over the one planned for, differs by more than `gain` from the median rank's,
//     in the same direction in each of the last `windows` windows of `window` steps. A window's mean leaves
//     out its fastest and its slowest step. Speeds of other ranks count as the median rank's
//   * shorten a step, as predicted for the present speeds, by the share `gain` or more
//   * save, in all steps that are left, more than `safety` times the pause that it takes: two steps, or what
//     the last move took. Nothing is planned unless ranks that computed equally long would save that and the
//     time of planning, which is what planning took last
//
// It is judged by the median of as many steps as it was decided by, at the speeds that it was planned for.
// One that did not shorten them is taken back, and for `rest` steps there is no other. Where some ranks'
// speeds have changed again, the network is planned anew instead. With each further move in a row that brings
// less than half of what was predicted, whether it is taken back or not, the rest is twice as long.
struct RebalanceRule {
  int window = 5, windows = 3;
  double gain = 0.1, safety = 2;
  int rest = 100;
  int steps() const { return window * windows; }
};
std::string describe(const RebalanceRule&);

// A RebalanceReport is made of each move when it is done, and once more when it was judged.
struct RebalanceReport {
  enum class What { moved, kept, taken_back } what = What::moved;
  int64_t step = 0;                                      // steps done
  std::vector<double> speeds;                            // present, by rank, relative to those planned for
  double before_s = 0;                                   // a step, measured
  double predicted_before_s = 0, predicted_after_s = 0;  // for the present speeds
  Moved moved;
  double pause_s = 0, planning_s = 0;
  double after_s = 0;  // a step, measured; where it was judged
  std::string plan;    // that the run has now, as a hash
};

class Rebalancer final : public MoveRule {
 public:
  // Returns a division with its predictions for ranks of other speeds, and the best one for these.
  struct Planned {
    Division now, best;
  };
  using Planner = std::function<Planned(const Division& now, const std::vector<double>& speeds)>;
  using Listener = std::function<void(const RebalanceReport&)>;

  Rebalancer(Division now, Planner, Listener, const RebalanceRule& = {});

  std::optional<Division> see(const StepMeasure&) override;
  void moved(const MoveReport&) override;
  void refused() override;
  const Division& now() const { return now_; }

 private:
  std::vector<double> speeds(int first_window, int windows) const;  // by rank
  std::vector<bool> others() const;
  std::optional<Division> look(int64_t steps_left);
  std::optional<Division> judge(const StepMeasure&);
  double most_gain_s(double step_s) const;
  bool pays(double gain_s, double step_s, double pause_s, int64_t steps_left) const;
  void rest();

  const RebalanceRule rule_;
  const Planner planner_;
  const Listener listener_;
  Division now_;
  std::vector<double> known_;  // speeds for which nothing better was found
  struct Recent {
    double seconds;
    std::vector<double> busy_s;
  };
  std::deque<Recent> recent_;       // steps under this plan
  int64_t seen_ = 0;                // of these in all
  int64_t step_ = 0;                // seen last
  bool first_ = true;               // whether the next one is the first of them, which warms caches up
  int64_t rests_until_ = 0;         // step
  int disappointing_ = 0;           // moves in a row
  double planning_s_;               // the last time
  std::optional<Division> wanted_;  // that the run is about to go over to
  std::optional<Division> former_;  // while the move away from it is on trial
  RebalanceReport report_;          // of the last move
};

}  // namespace antichain
