// torch.distributed.pipelining records what a model runs, and splits the record where the forward of a named
// module begins or ends. Its file names modules, each once.
//
// The record has the order in which the code runs. A profile with the modules that were called
// (Profile::called_once) has it, too. Of any other profile those cuts are written that are the same in every
// order: each last node before the cut feeds each first node behind it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "framework/error.h"
#include "partition/plan/called_modules.h"
#include "partition/plan/runtime_format.h"
#include "partition/profile/json_text.h"

namespace antichain {
namespace {

struct SplitPoint {
  std::string module;
  bool end;  // of its forward, or the beginning
};

// Places are the gaps between computed nodes in the profile's order: place p is before the p-th of them.
// Inputs and losses are in no module.
class SplitPlaces {
 public:
  explicit SplitPlaces(const Profile& profile) : profile_(profile) {
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      if (profile.nodes[n].role == Role::compute) computed_.push_back(int(n));
    const size_t places = computed_.size() + 1;
    points_.resize(places), last_input_.assign(places, -1), crossing_bytes_.assign(places, 0);
    find_neighbours();
    const std::vector<int64_t> lasts = count_lasts(), firsts = count_firsts(), edges = count_edges();
    same_in_every_order_.resize(places);
    for (size_t p = 1; p + 1 < places; ++p)
      same_in_every_order_[p] = edges[p] == lasts[p] * firsts[p] &&
                                (lasts[p] == 1 || std::ranges::none_of(firsts_of(int(p)), [&](int v) {
                                   return !node(v).absorbed.empty();  // it runs before some last node
                                 }));
    add_points();
  }

  int end() const { return int(computed_.size()); }
  const ProfileNode& node(int position) const { return profile_.nodes[computed_[position]]; }
  int index(int position) const { return computed_[position]; }
  bool in_order(int place) const { return profile_.called_once || same_in_every_order_[place]; }
  // The input that a node behind the place reads, or -1: PyTorch gives inputs to the first stage alone.
  int input_behind(int place) const { return last_input_[place]; }
  int64_t crossing_bytes(int place) const { return crossing_bytes_[place]; }
  // Outer modules come first, and beginnings before ends. There is none where the cut can't be made.
  const std::vector<SplitPoint>& points(int place) const { return points_[place]; }

 private:
  // Positions of computed nodes, in place of indices of nodes.
  void find_neighbours() {
    std::map<int, int> position_of;
    inputs_.resize(computed_.size()), readers_.resize(computed_.size());
    for (int v = 0; v < end(); ++v) {
      position_of[index(v)] = v;
      std::set<int> inputs;
      for (const int input : node(v).inputs) {
        if (const auto u = position_of.find(input); u != position_of.end()) inputs.insert(u->second);
        if (profile_.nodes[input].role == Role::input)
          std::fill(last_input_.begin(), last_input_.begin() + v + 1, input);
      }
      inputs_[v].assign(inputs.begin(), inputs.end());
      for (const int u : inputs) readers_[u].push_back(v);
    }
    for (int u = 0; u < end(); ++u)
      for (int p = u + 1; p <= (readers_[u].empty() ? u : readers_[u].back()); ++p)
        crossing_bytes_[p] += node(u).cost.output_bytes;
  }

  int last_input_of(int v) const { return inputs_[v].empty() ? -1 : inputs_[v].back(); }
  int first_reader_of(int u) const { return readers_[u].empty() ? end() : readers_[u].front(); }

  // Each function below counts at every place: 1 is added from one place to another, both included.
  template <typename Ranges>
  std::vector<int64_t> counted(const Ranges& for_ranges) const {
    std::vector<int64_t> change(points_.size() + 1);
    for_ranges([&](int from, int to) {
      if (from <= to) ++change[from], --change[to + 1];
    });
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }
  std::vector<int64_t> count_lasts() const {  // nodes before the place that none before it reads
    return counted([&](auto add) {
      for (int u = 0; u < end(); ++u) add(u + 1, first_reader_of(u));
    });
  }
  std::vector<int64_t> count_firsts() const {  // nodes behind it that read none behind it
    return counted([&](auto add) {
      for (int v = 0; v < end(); ++v) add(last_input_of(v) + 1, v);
    });
  }
  std::vector<int64_t> count_edges() const {  // from those to these
    return counted([&](auto add) {
      for (int v = 0; v < end(); ++v)
        for (const int u : inputs_[v]) add(last_input_of(v) + 1, first_reader_of(u));
    });
  }

  // These are right where the place is the same in every order.
  std::vector<int> lasts_of(int place) const {
    std::vector<int> lasts;
    for (const int u : inputs_[place])
      if (first_reader_of(u) >= place) lasts.push_back(u);
    return lasts;
  }
  std::vector<int> firsts_of(int place) const {
    std::vector<int> firsts;
    for (const int v : readers_[place - 1])
      if (last_input_of(v) < place) firsts.push_back(v);
    return firsts;
  }

  void add_points() {
    for (const CalledModule& module : called_modules(profile_)) {
      const auto place_of = [&](int n) {
        return int(std::ranges::lower_bound(computed_, n) - computed_.begin());
      };
      const int begin = place_of(module.first), behind = place_of(module.last + 1);
      if (can_be_split(begin) && (profile_.called_once || all_begin_in(module.name, firsts_of(begin))))
        points_[begin].push_back({module.name, false});
      if (can_be_split(behind) && (profile_.called_once || all_end_in(module.name, lasts_of(behind))))
        points_[behind].push_back({module.name, true});
    }
    for (std::vector<SplitPoint>& points : points_)
      std::ranges::sort(points, std::less{}, [](const SplitPoint& point) {
        return std::tuple(point.end, point.module.size(), point.module);
      });
  }
  bool can_be_split(int place) const {
    return place > 0 && place < end() && input_behind(place) < 0 && in_order(place);
  }
  bool all_begin_in(const std::string& module, const std::vector<int>& nodes) const {
    return std::ranges::all_of(nodes, [&](int v) { return lies_in(node(v).name, module); });
  }
  // What a node absorbed runs after the node itself.
  bool all_end_in(const std::string& module, const std::vector<int>& nodes) const {
    return all_begin_in(module, nodes) && std::ranges::all_of(nodes, [&](int v) {
             return std::ranges::all_of(node(v).absorbed,
                                        [&](const std::string& name) { return lies_in(name, module); });
           });
  }

  const Profile& profile_;
  std::vector<int> computed_;  // indices of nodes
  std::vector<std::vector<int>> inputs_, readers_;
  std::vector<int> last_input_;
  std::vector<int64_t> crossing_bytes_;
  std::vector<bool> same_in_every_order_;
  std::vector<std::vector<SplitPoint>> points_;
};

// A Choice gives each of its places a point whose module no other place has. It is a matching, which grows
// along augmenting paths (Kuhn, "The Hungarian Method for the Assignment Problem", 1955).
class Choice {
 public:
  explicit Choice(const SplitPlaces& places) : places_(places) {}

  // Returns false, and stays as it is, where the places can't all have modules of their own.
  bool add(int place) {
    std::set<std::string> tried;
    return add(place, tried);
  }
  const SplitPoint& at(int place) const { return *chosen_.at(place); }

 private:
  bool add(int place, std::set<std::string>& tried) {
    for (const SplitPoint& point : places_.points(place)) {
      if (!tried.insert(point.module).second) continue;
      const auto other = place_of_.find(point.module);
      if (other != place_of_.end() && !add(other->second, tried)) continue;
      place_of_[point.module] = place;
      chosen_[place] = &point;
      return true;
    }
    return false;
  }

  const SplitPlaces& places_;
  std::map<std::string, int> place_of_;
  std::map<int, const SplitPoint*> chosen_;
};

// Returns the places at which the plan cuts, the first of them before stage 1.
std::vector<int> places_of_cuts(const Plan& plan, const Profile& profile, const SplitPlaces& places) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::vector<int> cuts;
  for (int s = 1, place = 0; s < int(plan.stages.size()); ++s) {
    const int begin = place;
    while (place < places.end() && stage_of[places.index(place)] < s) ++place;
    if (place == begin || place == places.end())
      throw Error(fmt::format("stage {} has nothing but the loss, which is in no module of PyTorch",
                              place == begin ? s - 1 : s),
                  "plan for fewer stages");
    for (int v = place; v < places.end(); ++v)
      if (stage_of[places.index(v)] < s)
        throw Error(fmt::format("PyTorch splits a model in the order in which its code runs, but {} of stage "
                                "{} runs before {} of stage {}",
                                places.node(place).name, stage_of[places.index(place)], places.node(v).name,
                                stage_of[places.index(v)]),
                    "plan by the method antichain, which then cuts in that order");
    cuts.push_back(place);
  }
  return cuts;
}

[[noreturn]] void refuse_cut(const Profile& profile, const SplitPlaces& places, int place, int stage) {
  const std::string before = places.node(place - 1).name, behind = places.node(place).name;
  if (!places.in_order(place))
    throw Error(fmt::format("PyTorch splits a model in the order in which its code runs, but {} and {}, "
                            "between which stage {} begins, are in parallel branches",
                            before, behind, stage),
                "plan by the method antichain, which then cuts where the branches meet");
  if (const int input = places.input_behind(place); input >= 0)
    throw Error(fmt::format("PyTorch gives a model's inputs to its first stage alone, but stage {} begins "
                            "between {} and {}, and {} is read behind them",
                            stage, before, behind, profile.nodes[input].name),
                "compute something of that input in the model's first layers, and pass that on");
  if (places.points(place).empty())
    throw Error(fmt::format("PyTorch splits a model where a module begins or ends, but between {} and {}, "
                            "before stage {}, the profile has no such place",
                            before, behind, stage),
                profile.called_once
                    ? "plan by the method antichain, which then cuts where a module begins or ends"
                    : "plan by the method antichain, which then cuts where a module begins or ends, or "
                      "measure with antichain.profile_torch, which records the modules");
  throw Error(fmt::format("PyTorch splits once at a module, but between {} and {}, before stage {}, the "
                          "profile has none but {}, which another cut needs",
                          before, behind, stage, places.points(place)[0].module),
              "plan by the method antichain, which then cuts elsewhere, or for fewer stages");
}

}  // namespace

Layers layers_between_split_points(const Profile& profile, SplitCuts cuts) {
  const SplitPlaces places(profile);
  std::vector<int> order(size_t(places.end()));
  std::iota(order.begin(), order.end(), 0);
  // Of all sets of places that have modules of their own, one with the fewest bytes: such sets are a matroid
  // (Edmonds & Fulkerson, "Transversals and Matroid Partition", 1965), so the smallest first is best.
  std::ranges::stable_sort(order, std::less{}, [&](int place) { return places.crossing_bytes(place); });
  Choice choice(places);
  std::vector<bool> begins(size_t(places.end()));
  for (const int place : order)
    begins[place] = cuts == SplitCuts::one_by_one ? !places.points(place).empty() : choice.add(place);
  Layers layers;
  for (int v = 0; v < places.end(); ++v) {
    if (v == 0 || begins[v]) layers.emplace_back();
    layers.back().push_back(places.index(v));
  }
  return layers;
}

std::string split_points(const Plan& plan, const Profile& profile) {
  const SplitPlaces places(profile);
  const std::vector<int> cuts = places_of_cuts(plan, profile, places);
  Choice choice(places);
  for (size_t c = 0; c < cuts.size(); ++c)
    if (!choice.add(cuts[c])) refuse_cut(profile, places, cuts[c], int(c) + 1);
  std::vector<std::string> lines;
  for (const int place : cuts) {
    const SplitPoint& point = choice.at(place);
    lines.push_back(fmt::format("  {}: \"{}\"", quoted(point.module), point.end ? "END" : "BEGINNING"));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
}

}  // namespace antichain
