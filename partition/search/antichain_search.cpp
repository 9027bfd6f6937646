#include "partition/search/antichain_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "framework/units.h"
#include "partition/search/contract.h"
#include "partition/search/kind_crews.h"
#include "partition/search/load_cuts.h"
#include "partition/search/topological_orders.h"

namespace antichain {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t largest_table = int64_t(1) << 27;  // numbers per state and gate: at most a gigabyte of them
constexpr double good_gap = 0.005;                   // of a part: not worth a search of larger parts
constexpr int most_moves = 100'000;                  // 8 different devices with replicas have 6,305
constexpr int most_states_with_fronts = 20'000;      // a Pareto front per state and gate
constexpr int many_states = 20'000;                  // worth a guess by coarser lattices
constexpr int most_states_of_kinds = 300;            // crews of many kinds of devices take their square

// Refuses more stages than nodes that sit together leave.
void check_stages(const CutGraph& graph, const Profile& profile, const PlanOptions& options) {
  const auto size = [](const std::vector<int>& nodes) { return nodes.size(); };
  const std::vector<int>& largest = *std::ranges::max_element(graph.nodes, {}, size);
  const bool choice = options.replicas.automatic;
  if (largest.size() == 1 || options.at_most ||
      options.stages <= graph.size() * (choice ? options.microbatches : 1))
    return;
  throw Error(
      fmt::format("{} {} were asked for, but {} can be cut into {} stage{} at most{}, because nodes sit "
                  "together: {} and {}{}",
                  options.stages, choice ? "devices" : "stages", profile.model, graph.size(),
                  graph.size() == 1 ? "" : "s", choice ? ", each on a device per micro-batch," : "",
                  profile.nodes[size_t(largest[0])].name, profile.nodes[size_t(largest[1])].name,
                  largest.size() > 2 ? fmt::format(" with {} more", largest.size() - 2) : ""),
      choice ? "ask for fewer devices or more micro-batches" : "ask for fewer stages", ExitCode::usage);
}

CutGraph graph_of(const Profile& profile, const PlanOptions& options) {
  CutGraph graph = graph_to_cut(profile, options);
  check_stages(graph, profile, options);
  return of_loads(options.objective) ? without_idle_ends(graph, profile, options) : graph;
}

// It takes a second to find that there are more than a million down-sets, and many searches ask: one for each
// policy, and again under other limits.
std::optional<AntichainDag> whole_lattice(const CutGraph& graph, int64_t max_states) {
  static std::mutex mutex;
  static std::set<std::pair<std::vector<std::vector<int>>, int64_t>> known_to_have_more;
  const std::pair asked(graph.inputs, max_states);
  if (const std::scoped_lock lock(mutex); known_to_have_more.contains(asked)) return std::nullopt;
  std::optional<AntichainDag> lattice;
  if (std::optional<ChainCover> cover = chain_cover(graph))
    lattice = AntichainDag::build(graph, std::move(*cover), max_states);
  if (const std::scoped_lock lock(mutex); !lattice) known_to_have_more.insert(asked);
  return lattice;
}

// Returns a bound that holds where nothing up to `below` was found.
int64_t beyond(int64_t below) { return below == unlimited ? unlimited : below + 1; }

// Says whether a stage has devices of one kind, which differ by their profile.
bool crews_are_of_a_kind(const PlanOptions& options, int devices) {
  std::set<std::pair<int, bool>> profiles;
  for (const std::vector<int>& members : PlacementDag::kinds(options, devices)) {
    const Device& device = options.cluster.device(members.front());
    if (!profiles.emplace(device.profile, device.host).second) return false;
  }
  return true;
}

// Returns devices in the cluster's order, fastest first, and slowest first. It is for more different devices
// than can be permuted.
std::vector<std::vector<int>> device_orders(const Cluster& cluster, int devices) {
  const std::vector<int> fastest = cluster.fastest(devices);
  std::vector<int> chosen = fastest, slowest = fastest;
  std::sort(chosen.begin(), chosen.end());
  std::reverse(slowest.begin(), slowest.end());
  return {chosen, fastest, slowest};
}

}  // namespace

Error does_not_fit(const Profile& profile, const PlanOptions& options, const LeastMemory& least) {
  const std::string devices =
      fmt::format("{}{} devices", options.at_most ? "at most " : "", options.devices());
  std::string sentence =
      least.exact ? fmt::format("{} does not fit the memory of {}, however it is cut{}", profile.model,
                                devices, options.recompute ? ", and whatever is recomputed" : "")
                  : fmt::format("no plan of {} was found that fits the memory of {}", profile.model, devices);
  if (least.bytes > 0)
    sentence += fmt::format(": the smallest that {} is {} bytes{} on each",
                            least.exact ? "would do" : "was found to do", least.bytes,
                            least.bytes < 1024 ? "" : fmt::format(" ({})", size_text(double(least.bytes))));
  return Error(sentence,
               "use larger devices, more of them, a smaller micro-batch, or fewer micro-batches in flight");
}

AntichainSearch::AntichainSearch(const Profile& profile, const PlanOptions& options,
                                 const StageFitter* fitter)
    : profile_(profile),
      options_(options),
      graph_((check(options, profile), graph_of(profile, options))),
      limited_(options.cluster.limits_memory()),
      own_fitter_(fitter ? nullptr
                         : std::make_shared<StageFitter>(profile, options.shard_optimiser, options.cluster)),
      fitter_(fitter ? *fitter : *own_fitter_) {
  list_lattices();
}

void AntichainSearch::list_lattices() {
  for (const std::vector<int>& order : topological_orders(graph_))
    sequences_.push_back(std::make_unique<AntichainDag>(AntichainDag::prefixes(reordered(graph_, order))));
  if (std::optional<AntichainDag> lattice = whole_lattice(graph_, options_.max_states))
    whole_ = std::make_unique<AntichainDag>(std::move(*lattice));
}

// Returns the finest contraction whose lattice can be searched, or nullptr when none can.
const AntichainDag* AntichainSearch::contracted() {
  if (std::exchange(tried_to_contract_, true)) return contracted_.get();
  const int64_t most_ns = bound_without_search_ns(profile_, options_, device_counts().back()) / 16;
  const CutGraph graphs[] = {without_idle_ends(graph_, profile_, options_),
                             contract(graph_, Contraction::chains, most_ns),
                             contract(graph_, Contraction::chains_and_branches, most_ns)};
  for (const CutGraph& graph : graphs) {
    std::optional<AntichainDag> lattice = whole_lattice(graph, options_.max_states);
    if (!lattice) continue;
    contracted_ = std::make_unique<AntichainDag>(std::move(*lattice));
    break;
  }
  return contracted_.get();
}

// With --at-most the counts ascend, so that of equal bottlenecks the fewest devices win.
std::vector<int> AntichainSearch::device_counts() const {
  int most = options_.devices();
  if (!options_.at_most) return {most};
  if (options_.replicas.off()) most = std::min(most, graph_.size());
  if (fewer_at_once()) return {most};
  std::vector<int> counts(static_cast<size_t>(most));
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

// How many micro-batches are in flight follows from the number of devices, and counts where it takes memory.
bool AntichainSearch::fewer_at_once() const {
  const bool keeps = std::ranges::any_of(graph_.kept_bytes, [](int64_t bytes) { return bytes > 0; });
  return of_loads(options_.objective) && options_.at_most && !(limited_ && keeps);
}

AntichainSearch::Placements AntichainSearch::placements(int devices, bool& all) {
  Placements chosen;
  std::optional<PlacementDag> every = PlacementDag::build(options_, devices, most_moves);
  const AntichainDag& largest = whole_ ? *whole_ : *sequences_.front();
  all = every && BottleneckSearch::table_entries(largest, *every) <= largest_table;
  if (every) {
    kept_placements_.push_back(std::make_unique<PlacementDag>(std::move(*every)));
    chosen.push_back(kept_placements_.back().get());
  }
  return chosen;
}

// Adds those that take devices in an order.
void AntichainSearch::add_orders(Placements& chosen, int devices) {
  for (const std::vector<int>& order : device_orders(options_.cluster, devices)) {
    kept_placements_.push_back(std::make_unique<PlacementDag>(PlacementDag::in_order(options_, order)));
    chosen.push_back(kept_placements_.back().get());
  }
}

Solution AntichainSearch::best() {
  std::optional<Solution> best;
  lower_bound_ns_ = unlimited;
  for (int devices : device_counts()) {
    Outcome outcome = solve(devices, best ? best->bottleneck_ns - 1 : unlimited);
    lower_bound_ns_ = std::min(lower_bound_ns_, outcome.lower_bound_ns);
    if (outcome.solution) best = std::move(outcome.solution);
  }
  if (!best) best = fitting();
  refuse_bars(best->bottleneck_ns);
  lower_bound_ns_ = std::min(lower_bound_ns_, best->bottleneck_ns);
  return *best;
}

// A stage with a node that is barred on its device takes longer than any other.
void AntichainSearch::refuse_bars(int64_t bottleneck_ns) const {
  bool bars = bars_nodes(profile_);
  for (const KindProfile& kind : options_.cluster.profiles) bars |= bars_nodes(*kind.profile);
  if (bars && bottleneck_ns >= barred_ns)
    throw Error(
        fmt::format("{} can't be cut for {}{} devices so that no node is on a device on which it is barred",
                    profile_.model, options_.at_most ? "at most " : "", device_counts().back()),
        "use more devices of the kinds that may have the nodes, or correct \"barred\" in the profiles");
}

AntichainSearch::Outcome AntichainSearch::solve(int devices, int64_t below) {
  bool all_placements = false;
  Placements chosen = placements(devices, all_placements);
  int64_t low = bound_without_search_ns(profile_, options_, devices);
  if (low > below) return {.lower_bound_ns = low};
  if (whole_ && all_placements) {
    Outcome outcome = search(*whole_, *chosen.front(), low, below);
    if (outcome.exhaustive || (options_.recompute && outcome.solution)) return outcome;
    Outcome part = solve_parts(chosen, low, below, false);
    part.lower_bound_ns = std::max(part.lower_bound_ns, outcome.lower_bound_ns);
    return part;
  }
  if (std::optional<Outcome> by_kind = solve_by_kind(devices, low, below)) return *by_kind;
  if (!all_placements) add_orders(chosen, devices);
  return solve_parts(chosen, low, below, whole_ != nullptr);
}

// Returns nothing where no plan was found, or it is for other searches.
std::optional<AntichainSearch::Outcome> AntichainSearch::solve_by_kind(int devices, int64_t& low,
                                                                       int64_t below) {
  const bool counted = options_.devices() == devices && options_.replicas.of_stage.empty();
  if (!options_.cluster.has_kinds() || options_.recompute || of_loads(options_.objective) || !counted ||
      !whole_ || whole_->states() > most_states_of_kinds || !crews_are_of_a_kind(options_, devices))
    return std::nullopt;
  const KindCrews found = crews_by_kind(*whole_, profile_, options_, low);
  low = found.lower_bound_ns;
  if (found.crews.empty()) return std::nullopt;
  kept_placements_.push_back(std::make_unique<PlacementDag>(PlacementDag::of_crews(options_, found.crews)));
  Outcome outcome = search(*whole_, *kept_placements_.back(), low, below);
  if (!outcome.solution) return std::nullopt;
  outcome.lower_bound_ns = std::min(found.lower_bound_ns, outcome.solution->bottleneck_ns);
  outcome.exhaustive = false;
  return outcome;
}

// Takes the best of several orders. What they leave to be gained may come from lattices that can be searched.
AntichainSearch::Outcome AntichainSearch::solve_parts(const Placements& chosen, int64_t low, int64_t below,
                                                      bool on_whole) {
  Outcome best = {.lower_bound_ns = low, .exhaustive = false};
  auto try_on = [&](const AntichainDag* dag) {
    for (const PlacementDag* placements : chosen) {
      if (!dag || BottleneckSearch::table_entries(*dag, *placements) > largest_table) continue;
      Outcome found =
          search(*dag, *placements, low, best.solution ? best.solution->bottleneck_ns - 1 : below);
      if (found.solution) best.solution = std::move(found.solution);
    }
  };
  for (const auto& sequence : sequences_) try_on(sequence.get());
  const bool good = best.solution && double(best.solution->bottleneck_ns) <= (1 + good_gap) * double(low);
  if (!good) try_on(on_whole ? whole_.get() : contracted());
  return best;
}

// The whole lattice holds the prefixes of every order, and the down-sets of every contraction. What they
// attain is a guess at what the whole attains, and a test there takes a small part of the time.
int64_t AntichainSearch::attained_by_parts(const PlacementDag& placements, int64_t low, int64_t high) {
  const auto try_on = [&](const AntichainDag& dag, Guess guess) {
    BottleneckSearch search(dag, placements, profile_, options_);
    const int64_t attained = search.minimum(low, std::min(high, search.most()), guess);
    if (attained >= 0) high = std::min(high, attained);
  };
  for (const auto& sequence : sequences_) try_on(*sequence, Guess::poor);
  if (whole_->states() < many_states || high == low) return high;
  for (int64_t share : {16, 64}) {
    std::unique_ptr<AntichainDag>& coarse = coarser_[share];
    if (!coarse) {
      const CutGraph merged = contract(graph_, Contraction::chains, low / share);
      coarse = std::make_unique<AntichainDag>(*whole_lattice(merged, whole_->states()));
    }
    try_on(*coarse, Guess::good);
  }
  return high;
}

AntichainSearch::Outcome AntichainSearch::search(const AntichainDag& dag, const PlacementDag& placements,
                                                 int64_t low, int64_t below) {
  if (low > below) return {.lower_bound_ns = low};
  if (of_loads(options_.objective)) return search_loads(dag, placements, low, below);
  int64_t high = below;
  if (&dag == whole_.get()) high = attained_by_parts(placements, low, high);
  const Guess guess = high < below ? Guess::good : Guess::poor;
  BottleneckSearch search(dag, placements, profile_, options_);
  const int64_t bottleneck = search.minimum(low, std::min(high, search.most()), guess);
  if (bottleneck < 0 || bottleneck > below) return {.lower_bound_ns = beyond(below)};
  Cuts cuts = choose_cuts(search, tie_rule());
  if (!limited_ || fits_memory(cuts, dag, placements))
    return {{{&dag, &placements, std::move(cuts), bottleneck}}, bottleneck};
  if (options_.recompute) return search_recomputing(dag, placements, bottleneck, below);
  return search_within_memory(dag, placements, bottleneck, below);
}

// Prefixes of an order attain a load below which fewer pairs of the whole's states remain.
AntichainSearch::Outcome AntichainSearch::search_loads(const AntichainDag& dag,
                                                       const PlacementDag& placements, int64_t low,
                                                       int64_t below) {
  Outcome outcome = {.lower_bound_ns = beyond(below)};
  int64_t limit = beyond(below);
  const auto try_on = [&](const AntichainDag& on) {
    std::optional<FoundCuts> found =
        LoadCuts(on, placements, profile_, options_, fewer_at_once()).least(low, limit);
    if (!found) return;
    limit = outcome.lower_bound_ns = found->most;
    outcome.solution = {&on, &placements, std::move(found->cuts), found->most};
  };
  if (&dag == whole_.get())
    for (const auto& sequence : sequences_) try_on(*sequence);
  if (limit > low) try_on(dag);
  return outcome;
}

AntichainSearch::Outcome AntichainSearch::search_within_memory(const AntichainDag& dag,
                                                               const PlacementDag& placements, int64_t low,
                                                               int64_t below) const {
  if (dag.states() > most_states_with_fronts) return {.lower_bound_ns = low, .exhaustive = false};
  BottleneckSearch search(dag, placements, profile_, options_, Goal::time_in_memory);
  const int64_t bottleneck = search.minimum(low, std::min(below, search.most()));
  const bool found = bottleneck >= 0 && bottleneck <= below;
  Outcome outcome = {.exhaustive = search.exact()};
  if (found) outcome.solution = {&dag, &placements, choose_cuts(search, tie_rule()), bottleneck};
  outcome.lower_bound_ns = !outcome.exhaustive ? low : found ? bottleneck : beyond(below);
  return outcome;
}

AntichainSearch::Outcome AntichainSearch::search_recomputing(const AntichainDag& dag,
                                                             const PlacementDag& placements, int64_t low,
                                                             int64_t below) const {
  RecomputingCuts search(dag, placements, profile_, options_, fitter_);
  std::optional<FoundCuts> found = search.least_time(beyond(below));
  Outcome outcome = {.exhaustive = search.exact()};
  outcome.lower_bound_ns = !outcome.exhaustive ? low : found ? found->most : beyond(below);
  if (found) outcome.solution = {&dag, &placements, std::move(found->cuts), found->most};
  return outcome;
}

std::optional<int64_t> AntichainSearch::fit(PlanStage& stage, const Move& move) const {
  const std::optional<RecomputeChoice>& choice = fitter_.fit(stage.nodes, seat_of(move)).choice;
  if (!choice) return std::nullopt;
  stage.recomputed = choice->of(stage.nodes);
  return choice->ns;
}

// Bytes matter as far as they take time.
TieRule AntichainSearch::tie_rule() const {
  return options_.cluster.links_are_free() ? TieRule::most_even : TieRule::fewest_bytes;
}

bool AntichainSearch::fits_memory(const Cuts& cuts, const AntichainDag& dag,
                                  const PlacementDag& placements) const {
  BottleneckSearch memory(dag, placements, profile_, options_, Goal::memory);
  return memory.within_limits(cuts);
}

Solution AntichainSearch::near(const Solution& best, TieRule rule, double slack) const {
  if (of_loads(options_.objective)) return best;
  const int64_t threshold = best.bottleneck_ns + int64_t(slack * double(best.bottleneck_ns));
  const bool fronts = limited_ && !options_.recompute && best.dag->states() <= most_states_with_fronts;
  BottleneckSearch search(*best.dag, *best.placements, profile_, options_,
                          fronts ? Goal::time_in_memory : Goal::time);
  if (!search.attainable(threshold)) return best;
  Solution solution = {best.dag, best.placements, choose_cuts(search, rule), 0};
  const Cuts& cuts = solution.cuts;
  if (limited_ && !options_.recompute && !fits_memory(cuts, *best.dag, *best.placements)) return best;
  for (size_t s = 0; s < cuts.moves.size(); ++s) {
    PlanStage stage{.nodes = {}};
    if (options_.recompute) stage.nodes = best.dag->between(cuts.states[s], cuts.states[s + 1]);
    const std::optional<int64_t> again_ns = options_.recompute ? fit(stage, *cuts.moves[s]) : 0;
    if (!again_ns) return best;
    solution.bottleneck_ns =
        std::max(solution.bottleneck_ns,
                 search.stage_ns(cuts.states[s], cuts.states[s + 1], *cuts.moves[s], *again_ns));
  }
  return solution;
}

Plan AntichainSearch::plan_of(const Solution& solution) const {
  const std::vector<std::vector<int>> devices = solution.placements->devices(solution.cuts.moves);
  std::vector<PlanStage> stages;
  int rank = 0;
  for (size_t s = 0; s < devices.size(); ++s) {
    PlanStage stage{.nodes = solution.dag->between(solution.cuts.states[s], solution.cuts.states[s + 1])};
    for (size_t i = 0; i < devices[s].size(); ++i) stage.ranks.push_back(rank++);
    if (stage.ranks != devices[s]) stage.devices = devices[s];
    if (options_.recompute) fit(stage, *solution.cuts.moves[s]);
    stages.push_back(std::move(stage));
  }
  Plan plan =
      finish_plan(profile_, options_, std::move(stages), name_of(Method::antichain), solution.dag->states());
  plan.lower_bound_s = double(lower_bound_ns_) / 1e9;
  return plan;
}

// This is the plan whose fullest device is emptiest.
AntichainSearch::Emptiest AntichainSearch::search_memory() {
  Emptiest found{.least = {.bytes = unlimited}};
  int64_t& least = found.least.bytes;
  std::optional<Solution>& fitting = found.fitting;
  for (int devices : device_counts()) {
    bool all = false;
    const Placements chosen = placements(devices, all);
    // The whole lattice has what the sequences have.
    bool& exact = found.least.exact;
    exact &= whole_ && all;
    auto try_recomputing = [&](const AntichainDag& dag, const PlacementDag& placements) {
      RecomputingCuts search(dag, placements, profile_, options_, fitter_);
      std::optional<FoundCuts> cuts = search.least_memory(least);
      if (&dag == whole_.get()) exact &= search.exact();
      if (!cuts) return;
      least = cuts->most;
      const auto fits = [&](const Move* move) {
        return move->memory_bytes == 0 || move->memory_bytes >= least;
      };
      if (!fitting && std::ranges::all_of(cuts->cuts.moves, fits))
        fitting = {&dag, &placements, std::move(cuts->cuts)};
    };
    auto try_on = [&](const AntichainDag& dag, const PlacementDag& placements) {
      if (BottleneckSearch::table_entries(dag, placements) > largest_table) return;
      if (options_.recompute) return try_recomputing(dag, placements);
      BottleneckSearch search(dag, placements, profile_, options_, Goal::memory);
      const int64_t bytes = search.minimum(0, std::min(least, search.most()));
      if (bytes < 0) return;
      least = std::min(least, bytes);
      if (Cuts cuts = search.any_cuts(); !fitting && search.within_limits(cuts))
        fitting = {&dag, &placements, std::move(cuts)};
    };
    for (const PlacementDag* placements : chosen) {
      if (whole_) try_on(*whole_, *placements);
      for (const auto& sequence : sequences_) try_on(*sequence, *placements);
    }
  }
  return found;
}

// With fronts too long to search, something may fit all the same.
Solution AntichainSearch::fitting() {
  if (!limited_)
    throw Error(fmt::format("no plan for {} has exactly {} devices: the replicas of a stage have one profile",
                            profile_.model, device_counts().back()),
                "allow fewer with --at-most, or give devices a speed instead of a profile");
  Emptiest emptiest = search_memory();
  if (!emptiest.fitting) throw does_not_fit(profile_, options_, emptiest.least);
  Solution& fits = *emptiest.fitting;
  fits.bottleneck_ns = std::llround(plan_of(fits).bottleneck_s * 1e9);
  return fits;
}

}  // namespace antichain
