#include "framework/cuda/switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "framework/error.h"

namespace antichain::cuda {
namespace {

std::string_view said_by(const char* variable) {
  const char* said = std::getenv(variable);
  return said ? said : "";
}

Error refused(const char* variable, std::string_view why, const std::string& advice) {
  return Error(fmt::format("{} is '{}', which is {}", variable, said_by(variable), why),
               fmt::format("set it to {}, or unset it", advice), ExitCode::usage);
}

// Returns what the variable says: one of the words, or "" where it is not set.
std::string_view word_of(const char* variable, const std::vector<std::string_view>& words) {
  const std::string_view said = said_by(variable);
  if (said.empty() || std::ranges::find(words, said) != words.end()) return said;
  throw refused(variable, "none of its words", fmt::format("{}", fmt::join(words, " or ")));
}

std::string_view loops() { return word_of("ANTICHAIN_CUDA_LOOPS", {"convolutions", "products", "all"}); }

}  // namespace

bool records_graphs() { return word_of("ANTICHAIN_CUDA_GRAPHS", {"0", "1"}) != "0"; }

bool by_loops(Library library) {
  return loops() == "all" || loops() == (library == Library::cudnn ? "convolutions" : "products");
}

std::set<int64_t> skipped_engines() {
  constexpr const char* variable = "ANTICHAIN_CUDA_SKIP";
  const std::string_view said = said_by(variable);
  std::set<int64_t> skipped;
  for (size_t at = 0; at < said.size();) {
    const size_t end = std::min(said.find(',', at), said.size());
    int64_t number = -1;
    const auto [last, code] = std::from_chars(said.data() + at, said.data() + end, number);
    if (code != std::errc() || last != said.data() + end || number < 0 || end + 1 == said.size())
      throw refused(variable, "no list of engine numbers",
                    "numbers that ANTICHAIN_CUDA_PLANS=1 prints, such as 62,67");
    skipped.insert(number);
    at = end + 1;
  }
  return skipped;
}

bool prints_plans() { return !said_by("ANTICHAIN_CUDA_PLANS").empty(); }

bool rounds_weight_gradients() {
  return word_of("ANTICHAIN_WEIGHT_GRADIENTS", {"rounded", "exact"}) != "exact";
}

std::string switches_in_words() {
  std::string words;
  if (!loops().empty())
    words += fmt::format(", {} by our own loops", loops() == "all" ? "convolutions and products" : loops());
  if (const auto skipped = skipped_engines(); !skipped.empty())
    words += fmt::format(", without cuDNN's engines {}", fmt::join(skipped, " and "));
  if (!records_graphs()) words += ", without graphs";
  if (!rounds_weight_gradients()) words += ", weight gradients of bf16 exact";
  return words;
}

}  // namespace antichain::cuda
