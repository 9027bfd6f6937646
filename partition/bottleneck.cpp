#include "partition/bottleneck.h"

#include <algorithm>

#include "framework/error.h"

namespace antichain {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

BottleneckSearch::BottleneckSearch(const AntichainDag& dag, int stages, bool transfers_count)
    : dag_(dag),
      stages_(stages),
      transfers_count_(transfers_count),
      total_(dag.work_ns(dag.full())),
      latest_(size_t(dag.states()) * stages, -1),
      passing_(stages) {}

int64_t BottleneckSearch::minimum(int64_t low, int64_t high) {
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (attainable(middle))
      high = middle;
    else
      low = middle + 1;
  }
  ANTICHAIN_CHECK(attainable(high), "the search for the smallest bottleneck began below it");
  return high;
}

// latest_j(D) matters only if D, or something beyond it, can end the stage after: w(D) ≤ (j + 1) T.
int BottleneckSearch::first_useful(int state) const {
  int64_t stages_full = divide_up(dag_.work_ns(state), std::max<int64_t>(1, threshold_));
  return int(std::clamp<int64_t>(stages_full - 1, 0, stages_));
}

// And only if it can exist: S − j stages must have room for what lies beyond.
int BottleneckSearch::last_useful(int state) const {
  int64_t stages_left = divide_up(total_ - dag_.work_ns(state), std::max<int64_t>(1, threshold_));
  return int(std::clamp<int64_t>(stages_ - stages_left, -1, stages_ - 1));
}

bool BottleneckSearch::boundary(int state, int j) const {
  if (state == dag_.empty() || j == 0) return state == dag_.empty() && j == 0;
  if (latest(state, j - 1) < 0 || dag_.work_ns(state) - latest(state, j - 1) > threshold_) return false;
  return allowed(state) && (j == stages_ || j <= last_useful(state));
}

bool BottleneckSearch::attainable(int64_t threshold_ns) {
  threshold_ = threshold_ns;
  std::fill(latest_.begin(), latest_.end(), -1);
  for (int state = 0; state < dag_.full(); ++state) pass_on(state, first_useful(state), last_useful(state));
  return boundary(dag_.full(), stages_);
}

void BottleneckSearch::pass_on(int state, int first, int last) {
  if (first > last) return;
  for (int j = first; j <= last; ++j)
    passing_[j] = boundary(state, j) ? dag_.work_ns(state) : latest(state, j);
  for (int next : dag_.next(state)) {
    int64_t* theirs = &latest_[size_t(next) * stages_];
    for (int j = first; j <= last; ++j) theirs[j] = std::max(theirs[j], passing_[j]);
  }
}

std::vector<int> BottleneckSearch::any_cuts() const {
  std::vector<int> cuts(stages_ + 1, dag_.full());
  for (int j = stages_ - 1; j >= 0; --j) {
    int before = cuts[j + 1];
    int64_t wanted = latest(before, j);
    int state = 0;
    while (state < before &&
           !(dag_.work_ns(state) == wanted && boundary(state, j) && dag_.inside(state, before)))
      ++state;
    ANTICHAIN_CHECK(state < before, "a boundary that was found has gone");
    cuts[j] = state;
  }
  return cuts;
}

}  // namespace antichain
