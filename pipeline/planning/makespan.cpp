// This search finds the plan with the shortest step.
//
// There are too many plans to simulate, and the bottleneck says most about the step. So the search starts
// from plans with the smallest bottleneck, their ties and near-ties, and the cheap baselines, and climbs from
// the best of them. The result is no worse than any of these. Where the cuts are few enough to try them all,
// it is proved to be the best.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/all_cuts.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/cut_climb.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/memory_fit.h"
#include "pipeline/planning/planning.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

// Budgets are in the unit of CutScorer::spent().
constexpr int64_t climb_budget = 4'000'000, all_cuts_budget = 12'000'000, wander_budget = 40'000'000;
constexpr int64_t walk_budget = 4'000'000;  // of wandering, after which it goes on only if it found something
constexpr size_t most_climbs = 4;           // of each search, from different candidates
constexpr size_t most_promising = 3;        // searches to climb in
// Orders of devices, of which all cuts are tried, and pairs of states that are looked at for that.
constexpr int64_t most_paths = 24, most_pairs = 4'000'000;
constexpr int few_states = 20'000;  // with which more searches are cheap
constexpr double slacks[] = {0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};

// Returns crews of stages and devices as even as they go.
std::vector<int> even_crews(int stages, int devices) {
  std::vector<int> crews;
  for (int s = 0; s < stages; ++s) crews.push_back(devices * (s + 1) / stages - devices * s / stages);
  return crews;
}

// A Ground is a search of partition/, its candidates, and what climbing made of them.
struct Ground {
  PlanOptions options;  // the search keeps references to it
  std::shared_ptr<AntichainSearch> search;
  std::optional<Solution> best;  // by bottleneck
  std::unique_ptr<CutScorer> score;
  std::unique_ptr<CutClimb> climb;
  std::vector<ScoredCuts> found;  // the best first
};

// A Known is what is known of all plans of so many stages.
struct Known {
  double least_step_s = 0;
  bool done = false;  // whether a better one than what was found is ruled out
};

class MakespanSearch {
 public:
  MakespanSearch(const Profile& profile, const PlanOptions& options, const Policy& policy,
                 const StageFitter& fitter)
      : profile_(profile),
        options_(options),
        policy_(policy),
        fitter_(fitter),
        priced_(with_updates(profile, options.microbatches)),
        priced_kinds_(with_updates(options.cluster.profiles, options.microbatches)) {}

  Plan run() {
    check(options_, profile_);
    start_all();
    improve();
    for (const Method method : methods())
      if (method != Method::antichain && options_.together.empty()) add_baseline(method);
    if (!best_)
      throw Error(fmt::format("no plan of {} in {} stages gives every replica one of {} micro-batches",
                              profile_.model, options_.stages, options_.microbatches),
                  "ask for more micro-batches or fewer devices", ExitCode::usage);
    return finish();
  }

 private:
  bool by_program() const { return !options_.beside_bytes.empty(); }

  // Returns what is asked for, as a pipeline of so many devices by this objective of the bottleneck.
  PlanOptions variant(int devices, Objective objective, bool straight = false) const {
    PlanOptions options = options_;
    options.objective = objective;
    if (options.replicas.of_stage.empty()) options.stages = devices;
    options.at_most = false;
    if (straight) options.replicas = {};
    return options;
  }

  void start_all() {
    const bool links = !options_.cluster.links_are_free();
    PlanOptions bound = options_;  // with fewer devices where that is allowed
    bound.objective = Objective::compute;
    const Ground& first = start_from(bound, true);
    first_search_ = first.search;
    nodes_ = first.search->nodes();
    const int devices = options_.stages;
    const bool few = first.best->dag->states() <= few_states;
    if (options_.at_most && options_.replicas.of_stage.empty()) {
      const int most = options_.replicas.off() ? std::min(devices, nodes_ / options_.chunks) : devices;
      for (int fewer = few ? 1 : most; fewer <= most; ++fewer)
        try_from(variant(fewer, Objective::compute), fewer == most);
      if (links) try_from(variant(most, Objective::compute_or_transfer), true);
    } else if (links) {
      try_from(variant(devices, Objective::compute_or_transfer), true);
    }
    if (options_.replicas.automatic) start_without_choice(devices, links);
  }

  // Automatic replicas may leave out what is good for the step. So it also starts without replicas, and with
  // as even ones as there can be (which may be the only ones that have micro-batches for all).
  void start_without_choice(int devices, bool links) {
    if (nodes_ >= devices)
      try_from(variant(devices, links ? Objective::compute_or_transfer : Objective::compute, true), true);
    const auto some = [](const auto& ground) { return !ground->found.empty(); };
    if (grounds_[0]->best->dag->states() > few_states && std::any_of(grounds_.begin(), grounds_.end(), some))
      return;
    for (int stages = 2; stages < std::min(nodes_ + 1, devices); ++stages) {
      PlanOptions even = variant(devices, Objective::compute);
      even.replicas = {.of_stage = even_crews(stages, devices)};
      even.stages = stages;
      try_from(even, false);
    }
  }

  // Not everything that may be tried fits the memory.
  void try_from(const PlanOptions& options, bool near) {
    try {
      start_from(options, near);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      grounds_.pop_back();
    }
  }

  const Ground& start_from(const PlanOptions& options, bool near) {
    grounds_.push_back(std::make_unique<Ground>());
    Ground& ground = *grounds_.back();
    ground.options = one_device_a_stage(options, policy_);
    ground.options.cluster.profiles = priced_kinds_;
    ground.search = std::make_shared<AntichainSearch>(priced_, ground.options, &fitter_);
    ground.best = ground.search->best();
    ground.score = std::make_unique<CutScorer>(profile_, options_, policy_, *ground.best->dag,
                                               *ground.best->placements, fitter_);
    add_start(ground, ground.best->cuts);
    if (!near) return ground;
    const bool dear = ground.best->dag->states() > few_states && !options.replicas.off();
    for (double slack : dear ? std::span(slacks).subspan(std::size(slacks) - 2) : std::span(slacks))
      for (TieRule rule : {TieRule::fewest_bytes, TieRule::most_even})
        add_start(ground, ground.search->near(*ground.best, rule, slack).cuts);
    return ground;
  }

  void add_start(Ground& ground, const Cuts& cuts) {
    for (const ScoredCuts& known : ground.found)
      if (known.cuts == cuts) return;
    if (const std::optional<Score> score = (*ground.score)(cuts)) ground.found.push_back({cuts, *score});
    sort_found(ground);
  }

  // Improves the best candidates of the most promising searches. Then it tries all cuts, where they are few,
  // and otherwise looks around the best.
  void improve() {
    const auto empty = [](const auto& ground) { return ground->found.empty(); };
    grounds_.erase(std::remove_if(grounds_.begin(), grounds_.end(), empty), grounds_.end());
    sort_grounds();
    const size_t promising = std::min(most_promising, grounds_.size());
    for (size_t g = 0; g < promising; ++g) {
      Ground& ground = *grounds_[g];
      ground.climb = std::make_unique<CutClimb>(*ground.score);
      const size_t starts = std::min(most_climbs, ground.found.size());
      for (size_t i = 0; i < starts; ++i)
        ground.found[i] = ground.climb->climb(ground.found[i], climb_budget);
      sort_found(ground);
    }
    sort_grounds();
    for (const auto& ground : grounds_) try_all(*ground);
    conclude();
    for (size_t g = 0; g < promising && !proved_; ++g) {
      Ground& ground = *grounds_[g];
      if (g > 0 && !options_.at_most) break;
      if (ground.climb) wander(ground, g > 0 ? wander_budget / 4 : wander_budget);
    }
    for (const auto& ground : grounds_) add(*ground);
  }

  // Walks as long as each walk finds something better. With several stages a rank one long walk finds more.
  void wander(Ground& ground, int64_t budget) const {
    const int64_t walk = options_.chunks > 1 ? budget : walk_budget;
    ScoredCuts& best = ground.found[0];
    for (bool better = true; better && budget > 0; budget -= walk) {
      const ScoredCuts found = ground.climb->wander(best, std::min(budget, walk));
      better = found.score < best.score;
      best = found;
    }
  }

  static void sort_found(Ground& ground) {
    std::stable_sort(ground.found.begin(), ground.found.end(),
                     [](const ScoredCuts& a, const ScoredCuts& b) { return a.score < b.score; });
  }
  void sort_grounds() {
    std::stable_sort(grounds_.begin(), grounds_.end(),
                     [](const auto& a, const auto& b) { return a->found[0].score < b->found[0].score; });
  }

  void try_all(Ground& ground) {
    const int stages = int(ground.found[0].cuts.moves.size());
    const AntichainDag& dag = *ground.best->dag;
    const PlacementDag& placements = *ground.best->placements;
    if ((policy_.halves && !by_program()) || options_.chunks > 1 || !options_.replicas.off() ||
        known_.count(stages) > 0)
      return;
    if (stages == 1 && placements.has_all() && placements.paths(1).size() == 1 && !by_program()) {
      const bool exact = ground.score->exact();
      known_[1] = {exact ? ground.found[0].score.step_s : 0, exact};
      return;
    }
    if (dag.states() > AllCuts::most_states) return;
    const int64_t pairs = int64_t(dag.states()) * dag.states();
    const std::vector<std::vector<const Move*>> paths =
        placements.paths(size_t(std::clamp<int64_t>(most_pairs / pairs, 1, most_paths)));
    if (paths.empty()) return;
    Known& known = known_[stages];
    bool done = true;
    double least_step_s = std::numeric_limits<double>::infinity();
    const int64_t end = ground.score->spent() + all_cuts_budget;
    for (const std::vector<const Move*>& path : paths) {
      const AllCuts all(profile_, options_, dag, ground.search->is_whole(dag), path);
      least_step_s = std::min(least_step_s, all.least_step_s());
      if (!by_program() && all.least_step_s() > grounds_[0]->found[0].score.step_s) continue;
      done &=
          all.search(*ground.score, ground.found[0], end - ground.score->spent()) && ground.score->exact();
    }
    // Where programs count, messages are estimated, so that nothing is proved.
    if (!by_program() && placements.has_all()) known = {least_step_s, done};
  }

  // Concludes from what is known about every number of stages there may be.
  void conclude() {
    if (!options_.replicas.off()) return;
    const int most = options_.at_most ? std::min(options_.stages, nodes_) : options_.stages;
    proved_ = true;
    least_step_s_ = std::numeric_limits<double>::infinity();
    for (int stages = options_.at_most ? 1 : most; stages <= most; ++stages) {
      const auto found = known_.find(stages);
      proved_ = proved_ && found != known_.end() && found->second.done;
      least_step_s_ = std::min(least_step_s_, found != known_.end() ? found->second.least_step_s : 0);
    }
  }

  void add(const Ground& ground) {
    const Solution solution = {ground.best->dag, ground.best->placements, ground.found[0].cuts, 0};
    consider(on_its_ranks(ground.search->plan_of(solution), options_, policy_));
  }

  // A method that refuses, whatever the reason, is no candidate.
  void add_baseline(Method method) {
    try {
      PlanOptions options = options_;
      if (options.replicas.automatic && method != Method::pipedream && method != Method::data_parallel)
        options.replicas = {};
      if (options.replicas.off() && method == Method::data_parallel) return;
      const Plan plan = plan_by(method, profile_, options, policy_, fitter_);
      if (rank_that_does_not_fit(plan, options.cluster) < 0) consider(plan);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
    }
  }

  void consider(Plan plan) {
    if (by_program() && options_.recompute)
      refit(plan, profile_, on_so_many(options_, policy_, plan.ranks()),
            make_schedule(profile_, plan, policy_, options_.microbatches), fitter_);
    const double step = step_s(profile_, plan, policy_, options_.microbatches, options_.cluster);
    const int64_t lacking = lacking_bytes(plan, profile_, options_, policy_);
    const int64_t bytes =
        StageAdder(profile_)(plan.stage_of(int(profile_.nodes.size())), int(plan.stages.size())).bytes();
    if (best_ && std::tie(lacking_bytes_, best_->step_s, best_->bottleneck_s, bytes_) <=
                     std::tie(lacking, step, plan.bottleneck_s, bytes))
      return;
    best_ = std::move(plan);
    best_->step_s = step;
    bytes_ = bytes, lacking_bytes_ = lacking;
  }

  Plan finish() {
    Plan plan = finish_plan(profile_, on_so_many(options_, policy_, best_->ranks()), best_->stages,
                            name_of(Method::antichain), grounds_.front()->best->dag->states());
    plan.step_s = best_->step_s;
    if (options_.chunks > 1) return plan;  // with the bound that needs no search
    // What bounds a bottleneck with replicas counts all-reduces, which may hide behind backwards.
    plan.lower_bound_s =
        pace_bound_s(profile_, options_, policy_.halves,
                     options_.replicas.off() && !by_program() ? first_search_.get() : nullptr);
    if (options_.objective == Objective::period) return plan;
    plan.lower_bound_s =
        proved_ ? plan.step_s : but_for_rounding(std::max(plan.lower_bound_s, least_step_s_), plan.step_s);
    return plan;
  }

  const Profile& profile_;
  PlanOptions options_;
  const Policy policy_;
  const StageFitter& fitter_;
  const Profile priced_;
  const std::vector<KindProfile> priced_kinds_;
  int nodes_ = 0;  // to cut apart
  std::vector<std::unique_ptr<Ground>> grounds_;
  std::optional<Plan> best_;
  int64_t lacking_bytes_ = 0;  // of memory
  int64_t bytes_ = 0;          // that it sends
  std::shared_ptr<AntichainSearch>
      first_search_;            // for its lattice and its bound, which is that of all plans
  std::map<int, Known> known_;  // by stages
  double least_step_s_ = 0;     // no plan has a shorter one
  bool proved_ = false;         // that none is shorter than the one found
};

}  // namespace

Plan plan_makespan(const Profile& profile, const PlanOptions& options, const Policy& policy,
                   const StageFitter& fitter) {
  return MakespanSearch(profile, options, policy, fitter).run();
}

}  // namespace antichain
