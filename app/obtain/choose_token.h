// A network of tokens gives a number for each token that may come next, its logit. The next token is the one
// with the largest, or it is drawn by softmax(logits / temperature), from the `top_k` largest alone where
// that is given (Fan, Lewis, Dauphin, "Hierarchical Neural Story Generation", ACL 2018).
#pragma once

#include <cstdint>
#include <span>

namespace antichain {

struct SamplingOptions {
  double temperature = 0;  // 0: the largest
  int64_t top_k = 0;       // 0: any
  uint64_t seed = 0;
};

// Returns the token at `position` of the text, a pure function of its arguments. Of equal logits the token of
// the smaller number comes first. Throws Error where a logit is not a number, or the largest is infinite.
int32_t choose_token(std::span<const float> logits, const SamplingOptions&, int64_t position);

}  // namespace antichain
