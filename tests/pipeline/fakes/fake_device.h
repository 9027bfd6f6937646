// These stand-ins for the streams of a device work in host memory. Computing is the rank's own thread, so all
// that was started is done. Copies are made by a thread of their own, late and in turn. Messages take place
// by NCCL's rules: each rank has one stream, and the exchange that heads it stays there until all its
// messages have met their other halves at the head of the peers' streams. The stand-ins record what they were
// told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/device/device_streams.h"

namespace antichain::test {

// Copies one after the other in each direction, each a moment after it could have begun.
class FakeCopies : public CopyStream {
 public:
  FakeCopies();
  ~FakeCopies() override;

  Moment computed() override;
  void compute_after(const Moment&) override;
  bool reached(const Moment&) override;
  std::shared_ptr<std::byte> page_locked(int64_t bytes) override;
  Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) override;
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override;

  int page_locked_buffers() const { return buffers_; }

 private:
  struct Copy {
    Tensor from, to;
    std::shared_ptr<std::atomic<bool>> done;
  };
  Moment copy(const Tensor& from, const Tensor& to);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Copy> copies_;
  bool stopping_ = false;
  std::atomic<int> buffers_{0};
  std::thread thread_;
};

// What the fake message streams of all ranks share.
class Rendezvous {
 public:
  explicit Rendezvous(int ranks) : streams_(size_t(ranks)), calls(size_t(ranks)) {}

  std::vector<Moment> issue(int rank, int lanes, std::span<const MessageHalf>);
  bool reached(const Moment&);
  void give_up(int rank);  // its own halves vanish

 private:
  struct Half {
    MessageHalf half;
    bool met = false;
  };
  struct Work {
    std::vector<Half> halves;
    std::shared_ptr<std::atomic<bool>> done;
  };
  using Stream = std::deque<Work>;
  void advance();
  bool advance(int rank, Stream&);
  bool meet(int rank, Half& send);
  std::mutex mutex_;
  std::vector<std::map<int, Stream>> streams_;  // by rank and lane

 public:
  std::vector<std::vector<std::string>> calls;  // per rank, such as "send 4096 to 1, recv 8 from 1": together
};

class FakeMessages : public MessageStream {
 public:
  // A host that blocks stays in each call until the message has taken place, as at its strictest NCCL may.
  FakeMessages(Rendezvous& all, int rank, bool host_blocks, int lanes = 1)
      : all_(all), rank_(rank), lanes_(lanes), blocks_(host_blocks) {}

  Moment computed() override;
  void compute_after(const Moment&) override;
  bool reached(const Moment&) override;
  int lanes() const override { return lanes_; }
  std::vector<Moment> exchange(std::span<const MessageHalf>) override;
  std::string failure() override;
  void give_up() override;

  std::atomic<const char*> fails_with{""};

 private:
  Rendezvous& all_;
  const int rank_, lanes_;
  const bool blocks_;
};

}  // namespace antichain::test
