// A transport over another one: the job's ranks, its control plane and its watchdog stay those of the one
// below; only the way of tensors differs.
#pragma once

#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

class TransportOver : public Transport {
 public:
  explicit TransportOver(Transport& job) : job_(job) {}  // must outlive this one

  int rank() const override { return job_.rank(); }
  int size() const override { return job_.size(); }
  int local_rank() const override { return job_.local_rank(); }
  int local_size() const override { return job_.local_size(); }
  std::string host() const override { return job_.host(); }

  void barrier() override { job_.barrier(); }
  std::string broadcast(std::string bytes, int root) override {
    return job_.broadcast(std::move(bytes), root);
  }
  std::vector<std::string> gather(const std::string& bytes) override { return job_.gather(bytes); }
  void abort(int code) override { job_.abort(code); }
  void check_job() override { job_.check_job(); }

  Progress& activity() override { return job_.activity(); }
  void name_messages(Namer namer) override {
    Transport::name_messages(namer);
    job_.name_messages(std::move(namer));
  }

 protected:
  // Asks `done` until it says so, which has to move things on. The watchdog hears whom this waits for, and
  // what for once the wait has lasted.
  template <class Text, class Done>
  void poll(int peer, const Text& what, const Done& done) {
    if (done()) return activity().beat();
    using Clock = std::chrono::steady_clock;
    Progress::Wait waiting(activity(), peer);
    const auto start = Clock::now();
    for (bool explained = false; !done();) {
      job_.check_job();
      const auto waited = Clock::now() - start;
      if (!explained && waited > std::chrono::milliseconds(20)) {
        waiting.explain(what());
        explained = true;
      }
      if (waited > std::chrono::milliseconds(1))
        ::usleep(50);
      else
        std::this_thread::yield();
    }
  }

  Transport& job_;
};

}  // namespace antichain
