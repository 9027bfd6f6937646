#include "framework/cuda/fast.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "framework/error.h"

namespace antichain::cuda {
namespace {

constexpr FastWay table[] = {
    {Fast::weight_gradients, "s1", "weight gradients of bf16 are rounded once to bf16, as in PyTorch", true,
     false},
    {Fast::fold_in_sums, "s2", "the last block of a sum over pixels folds its parts", false},
    {Fast::special_passes, "s3", "batch norm's passes have code for each case, and round in pairs", true},
    {Fast::residual_sums, "s4", "batch norm's backward adds the residual's gradient as it reads it", true},
    {Fast::statistics, "s5", "one launch absorbs the statistics of all batch norms", true},
    {Fast::next_step, "s6", "the host starts a step before it waits for the one in front", true},
    {Fast::dependent_launch, "s7", "a kernel of ours starts while the one before it ends", false},
};

std::string names() {
  std::vector<std::string_view> all;
  for (const FastWay& way : table) all.push_back(way.name);
  return fmt::format("{}", fmt::join(all, ", "));
}

// Calls on(way) for each way that the variable names, or that is on by default where it is not set.
template <class On>
void each_chosen(const On& on) {
  const char* variable = std::getenv("ANTICHAIN_CUDA_FAST");
  const std::string_view said = variable ? variable : "";
  if (said == "plain") return;
  if (said.empty() || said == "all") {
    for (const FastWay& way : table)
      if (said == "all" || way.by_default) on(way);
    return;
  }
  for (size_t at = 0; at <= said.size();) {
    const size_t end = std::min(said.find(',', at), said.size());
    const std::string_view name = said.substr(at, end - at);
    const auto way = std::ranges::find(table, name, &FastWay::name);
    if (way == std::end(table))
      throw Error(
          fmt::format("ANTICHAIN_CUDA_FAST is '{}', and '{}' is no fast way", said, name),
          fmt::format("set it to some of {} with commas between, to all or plain, or unset it", names()),
          ExitCode::usage);
    on(*way);
    at = end + 1;
  }
}

}  // namespace

std::span<const FastWay> fast_ways() { return table; }

bool is_fast(Fast wanted) {
  bool found = false;
  each_chosen([&](const FastWay& way) { found |= way.way == wanted; });
  return found;
}

bool records_graphs() {
  const char* said = std::getenv("ANTICHAIN_CUDA_GRAPHS");
  return !said || std::string_view(said) != "0";
}

std::string graphs_in_words() { return records_graphs() ? "" : ", without graphs"; }

std::string fast_in_words() {
  std::vector<std::string_view> chosen, usual;
  for (const FastWay& way : table) {
    if (is_fast(way.way)) chosen.push_back(way.name);
    if (way.by_default) usual.push_back(way.name);
  }
  if (chosen == usual) return "";
  if (chosen.empty()) return ", without fast ways";
  return fmt::format(", fast ways {}", fmt::join(chosen, " and "));
}

}  // namespace antichain::cuda
