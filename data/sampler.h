// A Sampler says which samples make up which batch. Training visits every image once an epoch in an order
// keyed by (seed, epoch) and drops the last partial batch. Evaluation goes through the set in file order and
// pads the last batch.
#pragma once

#include <cstdint>
#include <vector>

namespace antichain {

struct BatchPosition {
  int64_t epoch = 0, batch = 0;  // batch within the epoch
  bool operator==(const BatchPosition&) const = default;
};

enum class Order { shuffled, in_file_order };
enum class LastBatch { drop, pad };

struct SamplerOptions {
  int64_t batch = 1;  // samples
  Order order = Order::shuffled;
  LastBatch last = LastBatch::drop;
  uint64_t seed = 0;
};

// Returns a permutation of 0 … size − 1, a pure function of its arguments (Fisher and Yates 1938;
// Durstenfeld, "Algorithm 235: Random permutation", CACM 1964).
std::vector<int64_t> permutation(int64_t size, uint64_t seed, int64_t epoch);

// Keeps one epoch's order; not for several threads at once.
class Sampler {
 public:
  static constexpr int64_t padding = -1;

  // Throws Error when there is not one whole batch to train on.
  Sampler(int64_t samples, const SamplerOptions&);

  int64_t batches() const { return batches_; }      // per epoch
  int64_t samples() const { return samples_; }      // of the data set
  int64_t real_samples(int64_t batch) const;        // samples of the batch that are not padding
  BatchPosition after(const BatchPosition&) const;  // the next batch, of the next epoch if need be
  // Returns the data-set index of the k-th sample of a batch; `padding` beyond the end of the set.
  int64_t sample(const BatchPosition&, int64_t k);

 private:
  SamplerOptions options_;
  int64_t samples_, batches_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

}  // namespace antichain
