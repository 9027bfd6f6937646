#include "framework/known_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

void refuse_name(const std::string& what, const std::string& name, const std::vector<std::string>& known,
                 const std::string& meant) {
  const std::string near = meant.empty() ? nearest(name, known) : meant;
  throw Error(fmt::format("there is no {} '{}'", what, name),
              fmt::format("{}known are {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                          fmt::join(known, ", ")),
              ExitCode::usage);
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 2) + 1;  // 2: swapped letters
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace antichain
