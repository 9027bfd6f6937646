#include "pipeline/planning/all_cuts.h"

#include <algorithm>
#include <limits>

namespace antichain {
namespace {

constexpr double rounding = 1e-11;
constexpr double none = std::numeric_limits<double>::infinity();
constexpr int64_t price_of_a_boundary = 5;  // in the unit of CutScorer::spent()
// After this part of its budget, a search needs this share of all cuts behind it to go on. Later boundaries
// leave less room for the rest, so a search gets faster on its way.
constexpr int64_t look_after_part = 6;
constexpr double least_share = 0.1;

double least_seconds(const Cluster& cluster, int64_t bytes) {
  return std::min(cluster.within_node.seconds(bytes), cluster.between_nodes.seconds(bytes));
}

bool can_be_next(const Profile& profile, const std::vector<bool>& inside, size_t n) {
  const ProfileNode& node = profile.nodes[n];
  return !inside[n] && node.role != Role::input &&
         std::all_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
           return inside[size_t(input)] || profile.nodes[size_t(input)].role == Role::input;
         });
}

}  // namespace

AllCuts::AllCuts(const Profile& profile, const PlanOptions& options, const AntichainDag& dag, bool whole,
                 std::vector<const Move*> path)
    : profile_(profile),
      options_(options),
      dag_(dag),
      path_(std::move(path)),
      stages_(int(path_.size())),
      whole_(whole),
      least_(least_times(profile, options.cluster)) {
  for (const Move* move : path_) add_works(*move);
  find_heads();
  find_rests();
}

void AllCuts::add_works(const Move& move) {
  const Profile& times = options_.cluster.profile(move.profile, profile_);
  overhead_s_.push_back(times.overhead_s / move.speed);
  for (size_t stage = 0; stage < work_s_.size(); ++stage)
    if (path_[stage]->profile == move.profile && path_[stage]->speed == move.speed)
      return work_s_.push_back(std::vector(work_s_[stage]));
  std::vector<double>& works_s = work_s_.emplace_back();
  for (int state = 0; state < dag_.states(); ++state) {
    double work_s = 0;
    for (int n : dag_.down_set(state)) {
      const NodeCost& cost = times.nodes[size_t(n)].cost;
      work_s += cost.compute_s() + cost.update_s / options_.microbatches;
    }
    works_s.push_back(work_s / move.speed);
  }
}

void AllCuts::find_heads() {
  const LongestWays ways = longest_ways(least_);
  std::vector<bool> inside(profile_.nodes.size());
  for (int state = 0; state < dag_.states(); ++state) {
    std::fill(inside.begin(), inside.end(), false);
    for (int n : dag_.down_set(state)) inside[size_t(n)] = true;
    double head_s = none;
    for (size_t n = 0; n < inside.size(); ++n)
      if (can_be_next(profile_, inside, n)) head_s = std::min(head_s, wait_s(ways, profile_.nodes[n]));
    head_s_.push_back(head_s);
  }
}

// A node waits for its inputs, and for the gradients that it sends there.
double AllCuts::wait_s(const LongestWays& ways, const ProfileNode& node) const {
  double there_s = 0, back_s = 0;
  for (int input : node.inputs) {
    const ProfileNode& from = profile_.nodes[size_t(input)];
    if (from.role == Role::input) continue;
    const double message_s = least_seconds(options_.cluster, from.cost.output_bytes);
    there_s = std::max(there_s, ways.there_s[size_t(input)] + least_.overhead_s + message_s);
    if (from.needs_gradient)
      back_s = std::max(back_s, ways.back_s[size_t(input)] + least_.overhead_s + message_s);
  }
  return there_s + back_s;
}

double AllCuts::stage_s(int stage, int from, int to) const {
  const std::vector<double>& works_s = work_s_[size_t(stage)];
  const double work_s = works_s[size_t(to)] - works_s[size_t(from)] + 2 * overhead_s_[size_t(stage)];
  return (options_.microbatches * work_s + head_s_[size_t(from)]) * (1 - rounding);
}

void AllCuts::find_rests() {
  rest_s_.assign(size_t(stages_ + 1) * size_t(dag_.states()), none);
  rest_s(0, dag_.full()) = 0;
  for (int from = dag_.full() - 1; from >= 0; --from)
    for (int to = from + 1; to < dag_.states(); ++to) {
      if (!dag_.inside(from, to)) continue;
      for (int left = 1; left <= stages_; ++left)
        rest_s(left, from) =
            std::min(rest_s(left, from), std::max(stage_s(stages_ - left, from, to), rest_s(left - 1, to)));
    }
}

double AllCuts::least_step_s() const { return whole_ ? rest_s(stages_, dag_.empty()) : 0; }

// Says whether boundary b may be here, behind the one before it, for a step that is no longer.
bool AllCuts::may_follow(int b, int from, int to, double step_s) const {
  return dag_.inside(from, to) && stage_s(b - 1, from, to) <= step_s && rest_s(stages_ - b, to) <= step_s;
}

// Takes all ways on from a boundary for equally long.
double AllCuts::share_searched(const ScoredCuts& best, const std::vector<int>& states) const {
  double share = 0, of_each = 1;
  for (int b = 1; b < stages_ && of_each > 0; ++b) {
    const int from = states[size_t(b) - 1];
    int before = 0, all = 0;
    for (int to = from + 1; to < dag_.full(); ++to)
      if (may_follow(b, from, to, best.score.step_s)) ++all, before += to < states[size_t(b)];
    of_each = all > 0 ? of_each / all : 0;
    share += of_each * before;
  }
  return share;
}

// The search is depth first. Boundary b goes through all states beyond that of boundary b − 1.
bool AllCuts::search(CutScorer& score, ScoredCuts& best, int64_t budget) const {
  const int64_t begin = score.spent();
  int64_t boundaries = 0, look_at = budget / look_after_part;
  Cuts cuts{best.cuts.states, path_};
  const auto take_if_better = [&](double limit_s) {
    if (const std::optional<Score> found = score(cuts, limit_s); found && *found < best.score)
      best = {cuts, *found};
  };
  const int last = stages_ - 1;  // the last boundary that can move
  if (last == 0)
    take_if_better(none);
  else
    cuts.states[1] = dag_.empty();
  for (int b = 1; b > 0 && last > 0;) {
    const int64_t spent = score.spent() - begin + price_of_a_boundary * boundaries++;
    if (spent > budget) return false;
    if (spent > look_at) {
      if (share_searched(best, cuts.states) < least_share) return false;
      look_at = budget;
    }
    const int from = cuts.states[size_t(b) - 1], to = ++cuts.states[size_t(b)];
    const double limit_s = best.score.lacking_bytes > 0 ? none : best.score.step_s;
    if (to >= dag_.full()) {
      --b;
    } else if (may_follow(b, from, to, limit_s)) {
      if (b < last)
        cuts.states[size_t(++b)] = to;
      else
        take_if_better(limit_s);
    }
  }
  return whole_;
}

}  // namespace antichain
