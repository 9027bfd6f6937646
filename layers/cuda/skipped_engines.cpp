#include "layers/cuda/skipped_engines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "framework/error.h"

namespace antichain::cuda {

std::set<int64_t> skipped_engines() {
  const char* variable = std::getenv("ANTICHAIN_CUDA_SKIP");
  const std::string_view said = variable ? variable : "";
  std::set<int64_t> skipped;
  for (size_t at = 0; at < said.size();) {
    const size_t end = std::min(said.find(',', at), said.size());
    int64_t number = -1;
    const auto [last, code] = std::from_chars(said.data() + at, said.data() + end, number);
    if (code != std::errc() || last != said.data() + end || number < 0 || end + 1 == said.size())
      throw Error(fmt::format("ANTICHAIN_CUDA_SKIP is '{}', which is no list of engine numbers", said),
                  "set it to numbers that ANTICHAIN_CUDA_PLANS=1 prints, such as 62,67, or unset it",
                  ExitCode::usage);
    skipped.insert(number);
    at = end + 1;
  }
  return skipped;
}

std::string skipped_in_words() {
  const std::set<int64_t> skipped = skipped_engines();
  return skipped.empty() ? "" : fmt::format(", without cuDNN's engines {}", fmt::join(skipped, " and "));
}

}  // namespace antichain::cuda
