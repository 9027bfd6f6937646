// Orders the engines to try: first cuDNN's ranking, then its fallbacks. Engines that would have to be
// compiled come after all others, because compiling takes about a second a shape.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace antichain::cuda {

template <class Candidate>  // with a member `compiles`
std::vector<Candidate> in_order_of_effort(std::vector<Candidate> ranked, std::vector<Candidate> fallbacks) {
  std::ranges::move(fallbacks, std::back_inserter(ranked));
  std::stable_partition(ranked.begin(), ranked.end(), [](const Candidate& c) { return !c.compiles; });
  return ranked;
}

}  // namespace antichain::cuda
