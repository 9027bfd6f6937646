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
  LookingSum(const std::vector<int>& ranks, int me, int microbatches, int first_channel,
             const Context& context, std::atomic<int>& wrong)
      : turns_(sum_turns(ranks, me, first_channel, microbatches, true)),
        ranks_(ranks),
        own_(index_of(me)),
        first_channel_(first_channel),
        stream_(cuda::stream_of(context)),
        wrong_(wrong) {
    const auto tensors = [&](int count) {
      std::vector<Tensor> made;
      for (int i = 0; i < count; ++i) made.push_back(context.backend().tensor({{200 + i}, DType::i32}));
      return made;
    };
    parts_ = tensors(int(ranks.size()));
    for (size_t i = 0; i < ranks.size(); ++i)
      terms_.push_back(context.backend().tensor(parts_[size_t(own_)].spec()));
    statistics_ = tensors(microbatches);
  }

  const std::vector<Turn>& turns() const { return turns_; }

  void run(Transport& transport, int step) {
    const int replicas = int(ranks_.size());
    launch([=, this] {
      for (int j = 0; j < replicas; ++j) fill(parts_[size_t(j)], gradient(step, own_, j));
      for (int m = own_; m < int(statistics_.size()); m += replicas)
        fill(statistics_[size_t(m)], -1 - m - step);
    });
    exchange(transport, 1);
    launch([=, this] {
      for (int i = 0; i < replicas; ++i)
        if (i != own_) look(terms_[size_t(i)], gradient(step, i, own_));
      for (int m = 0; m < int(statistics_.size()); ++m) look(statistics_[size_t(m)], -1 - m - step);
      fill(parts_[size_t(own_)], sum(step, own_));
    });
    // What arrives next lies where the first messages were sent from.
    if (!transport.ordered()) transport.flush();
    exchange(transport, 2);
    launch([=, this] {
      for (int j = 0; j < replicas; ++j) look(parts_[size_t(j)], sum(step, j));
    });
  }

 private:
  static int gradient(int step, int from, int part) { return 1'000'000 + step * 10'000 + from * 100 + part; }
  static int sum(int step, int part) { return 2'000'000 + step * 10'000 + part; }
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
    const bool sends = turn.sends;
    if (channel == SumChannel::statistics) return statistics_[size_t(turn.key.microbatch)];
    if (channel == SumChannel::gradients && !sends) return terms_[size_t(index_of(turn.peer))];
    return parts_[size_t((channel == SumChannel::gradients) == sends ? index_of(turn.peer) : own_)];
  }

  void exchange(Transport& transport, int group) const {
    std::vector<Transport::Ticket> coming;
    for (const bool sends : {false, true})
      for (const Turn& turn : turns_) {
        if (turn.group != group || turn.sends != sends) continue;
        if (sends)
          transport.send(turn.key, turn.peer, tensor_of(turn));
        else
          coming.push_back(transport.recv(turn.key, turn.peer, tensor_of(turn)));
      }
    for (const Transport::Ticket ticket : coming) transport.wait(ticket);
  }

  const std::vector<Turn> turns_;
  const std::vector<int> ranks_;
  const int own_, first_channel_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::vector<Tensor> parts_, terms_, statistics_;
};

}  // namespace antichain::test
