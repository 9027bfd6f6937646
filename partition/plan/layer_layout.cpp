// Megatron-LM's pipeline layout has a letter for each transformer layer, E for the embedding before them and
// L for what follows them, and a bar between stages. Stage s runs on rank s mod R.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "framework/error.h"
#include "partition/plan/called_modules.h"
#include "partition/plan/runtime_format.h"

namespace antichain {
namespace {

// These are the nodes of the modules LIST.0, LIST.1, … as indices into the profile, ascending.
using Blocks = std::vector<std::vector<int>>;

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns what each node of LIST.N is: its path behind LIST.N, and its operator.
std::vector<std::pair<std::string, std::string>> parts_of(const std::vector<int>& block,
                                                          const std::string& module, const Profile& profile) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const int n : block) {
    const std::string& path = path_of(profile, n);
    parts.emplace_back(lies_in(path, module) ? path.substr(module.size()) : without_count(path),
                       profile.nodes[n].op);
  }
  return parts;
}

// Gives each block the nodes between it and the next one, and the last as many. Returns whether the blocks
// are alike then and follow each other.
bool become_layers(Blocks& blocks, const std::string& list, const Profile& profile) {
  if (blocks.size() < 2) return false;
  const int size = blocks[1][0] - blocks[0][0], begin = blocks[0][0];
  if (size <= 0 || begin + size * int64_t(blocks.size()) > int64_t(profile.nodes.size())) return false;
  for (size_t b = 0; b < blocks.size(); ++b) {
    std::vector<int> layer(static_cast<size_t>(size));
    std::iota(layer.begin(), layer.end(), begin + int(b) * size);
    if (blocks[b].front() != layer.front() || blocks[b].back() > layer.back()) return false;
    blocks[b] = std::move(layer);
    if (parts_of(blocks[b], fmt::format("{}.{}", list, b), profile) !=
        parts_of(blocks[0], fmt::format("{}.0", list), profile))
      return false;
  }
  return true;
}

// Returns the list of equal modules that has most of the nodes. Throws Error when none has half of them.
Blocks equal_blocks(const Profile& profile) {
  std::map<std::string, std::map<int, std::vector<int>>> lists;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (profile.nodes[n].role != Role::compute) continue;
    const std::string& path = path_of(profile, int(n));
    for (size_t at = path.find('.'); at != std::string::npos; at = path.find('.', at + 1)) {
      const size_t end = std::min(path.find('.', at + 1), path.size());
      if (const auto number = number_of(std::string_view(path).substr(at + 1, end - at - 1)))
        lists[path.substr(0, at)][*number].push_back(int(n));
    }
  }
  Blocks largest;
  size_t most = profile.nodes.size() / 2;
  for (const auto& [list, numbered] : lists) {
    Blocks blocks;
    for (const auto& [number, nodes] : numbered)
      if (number == int(blocks.size())) blocks.push_back(nodes);
    if (blocks.size() != numbered.size() || !become_layers(blocks, list, profile)) continue;
    const size_t nodes = blocks.size() * blocks[0].size();
    if (nodes > most) most = nodes, largest = blocks;
  }
  if (largest.empty())
    throw Error(fmt::format("Megatron-LM's layout counts equal transformer layers, but {} has no list of "
                            "equal modules that is most of it",
                            profile.model),
                "write the plan for another runtime");
  return largest;
}

void check_round_robin(const Plan& plan) {
  std::set<std::vector<int>> groups;
  for (const PlanStage& stage : plan.stages) groups.insert(stage.ranks);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (plan.stages[s].ranks != plan.stages[s % groups.size()].ranks)
      throw Error(fmt::format("Megatron-LM gives stage s to rank s mod {}, but this plan has stage {} on "
                              "rank {} and stage {} on rank {}",
                              groups.size(), s % groups.size(), plan.stages[s % groups.size()].ranks[0], s,
                              plan.stages[s].ranks[0]),
                  "plan for a schedule with one stage a rank, or for one whose stages go round the ranks");
}

// Throws Error where a node from `begin` on, before `end`, is not in the stage.
void check_in_stage(const Profile& profile, const std::vector<int>& stage_of, int begin, int end, int stage,
                    const char* what) {
  for (int n = begin; n < end; ++n)
    if (profile.nodes[n].role != Role::input && stage_of[n] != stage)
      throw Error(fmt::format("Megatron-LM has {} in stage {}, but this plan has {} in stage {}", what, stage,
                              profile.nodes[n].name, stage_of[n]),
                  "plan by the method antichain, which then cuts between transformer layers");
}

std::string times(char letter, int count) {
  if (count == 0) return "";
  return count == 1 ? std::string(1, letter) : fmt::format("{}*{}", letter, count);
}

// Returns the nodes from `begin` on, before `end`, that are neither inputs nor losses.
std::vector<int> computed(const Profile& profile, int begin, int end) {
  std::vector<int> nodes;
  for (int n = begin; n < end; ++n)
    if (profile.nodes[n].role == Role::compute) nodes.push_back(n);
  return nodes;
}

}  // namespace

Layers transformer_layers(const Profile& profile, SplitCuts) {
  Layers layers = equal_blocks(profile);
  const int first = layers.front().front(), behind = layers.back().back() + 1;
  if (const auto before = computed(profile, 0, first); !before.empty()) layers.insert(layers.begin(), before);
  if (const auto after = computed(profile, behind, int(profile.nodes.size())); !after.empty())
    layers.push_back(after);
  return layers;
}

std::string layer_layout(const Plan& plan, const Profile& profile) {
  check_round_robin(plan);
  const Blocks blocks = equal_blocks(profile);
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  const int last = int(plan.stages.size()) - 1;
  check_in_stage(profile, stage_of, 0, blocks[0][0], 0, "what precedes the transformer layers");
  check_in_stage(profile, stage_of, blocks.back().back() + 1, int(profile.nodes.size()), last,
                 "what follows the transformer layers");
  std::vector<int> layers(plan.stages.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int stage = stage_of[blocks[b][0]];
    check_in_stage(profile, stage_of, blocks[b][0], blocks[b].back() + 1, stage,
                   fmt::format("transformer layer {}", b).c_str());
    ++layers[stage];
  }
  std::vector<std::string> stages;
  for (int s = 0; s <= last; ++s)
    stages.push_back((s == 0 ? "E" : "") + times('t', layers[s]) + (s == last ? "L" : ""));
  return fmt::format("{}\n", fmt::join(stages, "|"));
}

}  // namespace antichain
