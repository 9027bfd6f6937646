#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

std::vector<int64_t> permutation(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const Philox random(mix(seed, hash_bytes("epoch order")));
  for (int64_t last = size - 1; last > 0; --last) {
    // word · (last + 1) / 2^32: no index is off its fair share by more than (last + 1) / 2^32, 1e-5 for
    // 50,000.
    const uint32_t word = random.words(uint64_t(last), uint64_t(epoch))[0];
    std::swap(order[size_t(last)], order[(uint64_t(word) * uint64_t(last + 1)) >> 32]);
  }
  return order;
}

Sampler::Sampler(int64_t samples, const SamplerOptions& options) : options_(options), samples_(samples) {
  if (options.batch < 1)
    throw Error(fmt::format("a batch of {} samples", options.batch), "a batch has at least one");
  const bool drops = options.last == LastBatch::drop;
  batches_ = (samples + (drops ? 0 : options.batch - 1)) / options.batch;
  if (batches_ == 0) {
    throw Error(fmt::format("the data set has {} samples, which is less than one batch of {}", samples,
                            options.batch),
                "use a smaller --batch or more data");
  }
}

int64_t Sampler::real_samples(int64_t batch) const {
  return std::clamp<int64_t>(samples_ - batch * options_.batch, 0, options_.batch);
}

BatchPosition Sampler::after(const BatchPosition& position) const {
  if (position.batch + 1 < batches_) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

int64_t Sampler::sample(const BatchPosition& position, int64_t k) {
  const int64_t at = position.batch * options_.batch + k;
  if (at >= samples_) return padding;
  if (options_.order == Order::in_file_order) return at;
  if (position.epoch != epoch_) {
    std::vector<int64_t>().swap(order_);  // so that there is one order at a time
    order_ = permutation(samples_, options_.seed, position.epoch);
    epoch_ = position.epoch;
  }
  return order_[size_t(at)];
}

}  // namespace antichain
