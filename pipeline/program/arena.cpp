#include "pipeline/program/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace antichain {
namespace {

constexpr int64_t alignment = 64;

int64_t round_up(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

ArenaLayout lay_out(std::span<const Lifetime> lifetimes) {
  std::vector<int> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  ArenaLayout layout{.offsets = std::vector<int64_t>(lifetimes.size())};
  std::vector<int> placed;  // by ascending offset
  for (int i : by_size) {
    int64_t at = 0;
    for (int other : placed) {
      if (!overlap(lifetimes[i], lifetimes[other])) continue;
      if (at + round_up(lifetimes[i].bytes) <= layout.offsets[other]) break;
      at = std::max(at, layout.offsets[other] + round_up(lifetimes[other].bytes));
    }
    layout.offsets[i] = at;
    layout.bytes = std::max(layout.bytes, at + round_up(lifetimes[i].bytes));
    const auto below = [&](int other) { return layout.offsets[other] <= at; };
    placed.insert(std::partition_point(placed.begin(), placed.end(), below), i);
  }
  return layout;
}

int64_t most_alive_bytes(std::span<const Lifetime> lifetimes) {
  std::map<int, int64_t> changes;
  for (const Lifetime& of : lifetimes) changes[of.first] += of.bytes, changes[of.last + 1] -= of.bytes;
  int64_t alive = 0, most = 0;
  for (const auto& [time, bytes] : changes) most = std::max(most, alive += bytes);
  return most;
}

}  // namespace antichain
