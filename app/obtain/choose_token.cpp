#include "app/obtain/choose_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

int32_t choose_token(std::span<const float> logits, const SamplingOptions& options, int64_t position) {
  const auto largest = std::ranges::max_element(logits);  // the first of equals
  if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); }) || !std::isfinite(*largest))
    throw Error(fmt::format("the output of the network behind token {} of the text is not finite", position),
                "take weights from before they went wrong", ExitCode::not_a_number);
  if (options.temperature == 0) return int32_t(largest - logits.begin());
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (options.top_k > 0 && options.top_k < std::ssize(tokens)) {
    const auto comes_before = [&](int32_t a, int32_t b) {
      const float x = logits[size_t(a)], y = logits[size_t(b)];
      return x > y || (x == y && a < b);
    };
    std::ranges::nth_element(tokens, tokens.begin() + options.top_k, comes_before);
    tokens.resize(size_t(options.top_k));
    std::ranges::sort(tokens);
  }
  std::vector<double> sums;  // of the shares, up to each token
  double sum = 0;
  for (const int32_t token : tokens)
    sums.push_back(sum += std::exp((double(logits[size_t(token)]) - double(*largest)) / options.temperature));
  const auto words = Philox(mix(options.seed, hash_bytes("next token"))).words(uint64_t(position));
  const double place = (double(words[0]) * 0x1p-32 + double(words[1]) * 0x1p-64) * sum;  // in [0, sum]
  const auto drawn = std::min(std::ranges::upper_bound(sums, place), sums.end() - 1);
  return tokens[size_t(drawn - sums.begin())];
}

}  // namespace antichain
