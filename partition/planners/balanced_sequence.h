// This template finds the contiguous split of a sequence into non-empty parts whose costliest part is
// cheapest.
//
// A part's cost depends on which part it is (devices differ) and never falls when the part grows at either
// end. Nothing else is asked of it. Let best[p](e) be the cheapest way to cut the first e elements into p + 1
// parts. Then
//
//     best[p](e) = min over b < e of max(best[p − 1](b), cost(p, b, e))
//
// As b grows, cost(p, b, e) falls, but best[p − 1](b) need not rise (parts must not be empty and costs differ
// from part to part). Yet a b with a later b' of no larger best[p − 1] is never needed. The ones that are
// left are kept on a stack and do rise, so the minimum is where the two cross, which a binary search finds.
// It computes O(parts x elements x log elements) costs.
#pragma once

#include <vector>

#include "framework/error.h"

namespace antichain {

// `cost(part, begin, end)` may be of any type with <. Returns where each part ends; the last is `elements`.
// Needs 1 <= parts <= elements. Of equally good begins of a part the later one is taken, so the result is the
// same everywhere.
template <class Cost>
std::vector<int> balanced_sequence(int elements, int parts, Cost cost) {
  using Value = decltype(cost(0, 0, 1));
  ANTICHAIN_CHECK(1 <= parts && parts <= elements, "every part needs an element");
  std::vector<Value> best(elements + 1), before;
  std::vector<std::vector<int>> begin(parts, std::vector<int>(elements + 1, 0));  // [part][end]
  for (int end = 1; end <= elements - parts + 1; ++end) best[end] = cost(0, 0, end);

  std::vector<int> rising;  // begins, with rising `before`
  for (int part = 1; part < parts; ++part) {
    before = best;
    rising.clear();
    const int last = elements - parts + part + 1;  // every later part gets an element
    for (int end = part + 1; end <= last; ++end) {
      while (!rising.empty() && !(before[rising.back()] < before[end - 1])) rising.pop_back();
      rising.push_back(end - 1);
      if (part == parts - 1 && end < last) continue;

      size_t low = 0, high = rising.size();  // the first begin whose earlier parts cost no less than this one
      while (low < high) {
        const size_t middle = (low + high) / 2;
        if (before[rising[middle]] < cost(part, rising[middle], end))
          low = middle + 1;
        else
          high = middle;
      }
      const bool earlier_dominates = low < rising.size();
      const bool part_dominates =
          low > 0 && (!earlier_dominates || cost(part, rising[low - 1], end) < before[rising[low]]);
      begin[part][end] = rising[part_dominates ? low - 1 : low];
      best[end] = part_dominates ? cost(part, rising[low - 1], end) : before[rising[low]];
    }
  }

  std::vector<int> ends(parts, elements);
  for (int part = parts - 1; part > 0; --part) ends[part - 1] = begin[part][ends[part]];
  return ends;
}

}  // namespace antichain
