// An all-reduce as the runner does it, with kernels that look whether what was to come is there and write
// what is sent.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/run/sum_turns.h"

namespace antichain::test {

class LookingSum {
 public:
  LookingSum(const std::vector<int>& ranks, int me, int microbatches, int buckets, int first_channel,
             const Context& context, std::atomic<int>& wrong)
      : ranks_(ranks),
        own_(index_of(me)),
        first_channel_(first_channel),
        stream_(cuda::stream_of(context)),
        wrong_(wrong) {
    const auto tensors = [&](int count, int more) {
      std::vector<Tensor> made;
      for (int i = 0; i < count; ++i)
        made.push_back(context.backend().tensor({{200 + more * i}, DType::i32}));
      return made;
    };
    for (int k = 0; k < buckets; ++k) {
      Bucket& bucket = buckets_.emplace_back();
      bucket.parts = tensors(int(ranks.size()), 0);
      bucket.terms = tensors(int(ranks.size()), 0);
      bucket.scatter = sum_turns(ranks, me, first_channel, microbatches, true, k, true);
      bucket.gather = sum_turns(ranks, me, first_channel, microbatches, true, k, false);
    }
    statistics_ = tensors(microbatches, 1);
  }

  std::vector<Turn> turns(int bucket, bool scatters) const {
    return scatters ? buckets_[size_t(bucket)].scatter : buckets_[size_t(bucket)].gather;
  }

  void begin(Transport& transport, int step, int k) {
    const int replicas = int(ranks_.size());
    launch([=, this] {
      Bucket& bucket = buckets_[size_t(k)];
      for (int j = 0; j < replicas; ++j) fill(bucket.parts[size_t(j)], gradient(step, k, own_, j));
      for (int m = own_; k == 0 && m < int(statistics_.size()); m += replicas)
        fill(statistics_[size_t(m)], -1 - m - step);
    });
    buckets_[size_t(k)].coming = exchange(transport, buckets_[size_t(k)].scatter);
  }
  void finish(Transport& transport, int step, int k) {
    const int replicas = int(ranks_.size());
    wait(transport, k);
    launch([=, this] {
      Bucket& bucket = buckets_[size_t(k)];
      for (int i = 0; i < replicas; ++i)
        if (i != own_) look(bucket.terms[size_t(i)], gradient(step, k, i, own_));
      for (int m = 0; k == 0 && m < int(statistics_.size()); ++m) look(statistics_[size_t(m)], -1 - m - step);
      fill(bucket.parts[size_t(own_)], sum(step, k, own_));
    });
    buckets_[size_t(k)].coming = exchange(transport, buckets_[size_t(k)].gather);
    wait(transport, k);
    launch([=, this] {
      Bucket& bucket = buckets_[size_t(k)];
      for (int j = 0; j < replicas; ++j)
        look(j == own_ ? bucket.parts[size_t(j)] : bucket.terms[size_t(j)], sum(step, k, j));
    });
  }

 private:
  struct Bucket {
    std::vector<Tensor> parts, terms;  // sums arrive where the terms were
    std::vector<Turn> scatter, gather;
    std::vector<Transport::Ticket> coming;
  };
  static int gradient(int step, int bucket, int from, int part) {
    return 1'000'000 + step * 100'000 + bucket * 10'000 + from * 100 + part;
  }
  static int sum(int step, int bucket, int part) {
    return 2'000'000 + step * 100'000 + bucket * 10'000 + part;
  }
  static void fill(const Tensor& tensor, int value) {
    std::fill_n(tensor.data<int>(), tensor.bytes() / int64_t(sizeof(int)), value);
  }
  void look(const Tensor& tensor, int value) {
    const int* begin = tensor.data<int>();
    wrong_ += std::any_of(begin, begin + tensor.bytes() / int64_t(sizeof(int)),
                          [value](int x) { return x != value; });
  }
  template <class Kernel>
  void launch(Kernel kernel) {
    test::fake_cuda::launch(stream_, [kernel] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      kernel();
    });
  }

  int index_of(int rank) const { return int(std::ranges::find(ranks_, rank) - ranks_.begin()); }
  const Tensor& tensor_of(const Turn& turn) const {
    const SumChannel channel = SumChannel(turn.key.channel - first_channel_);
    if (channel == SumChannel::statistics) return statistics_[size_t(turn.key.microbatch)];
    const Bucket& bucket = buckets_[size_t(turn.key.microbatch)];
    if (!turn.sends) return bucket.terms[size_t(index_of(turn.peer))];
    return bucket.parts[size_t(channel == SumChannel::gradients ? index_of(turn.peer) : own_)];
  }

  void wait(Transport& transport, int bucket) {
    for (const Transport::Ticket ticket : buckets_[size_t(bucket)].coming) transport.wait(ticket);
  }
  std::vector<Transport::Ticket> exchange(Transport& transport, const std::vector<Turn>& turns) const {
    std::vector<Transport::Ticket> coming;
    for (const bool sends : {false, true})
      for (const Turn& turn : turns) {
        if (turn.sends != sends) continue;
        if (sends)
          transport.send(turn.key, turn.peer, tensor_of(turn));
        else
          coming.push_back(transport.recv(turn.key, turn.peer, tensor_of(turn)));
      }
    return coming;
  }

  const std::vector<int> ranks_;
  const int own_, first_channel_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> statistics_;
};

}  // namespace antichain::test
