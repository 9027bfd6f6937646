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
  explicit TransportOver(Transport& below) : TransportOver(below, below.job()) {}
  TransportOver(Transport& below, Job& job) : Transport(job), below_(below) {}  // both must outlive it

  void name_messages(Namer namer) override {
    Transport::name_messages(namer);
    below_.name_messages(std::move(namer));
  }

 protected:
  // Asks `done` until it says so, which has to move things on. The watchdog hears whom this waits for, and
  // what for once the wait has lasted.
  template <class Text, class Done>
  void poll(int peer, const Text& what, const Done& done) {
    Progress& activity = job().activity();
    if (done()) return activity.beat();
    using Clock = std::chrono::steady_clock;
    Progress::Wait waiting(activity, peer);
    const auto start = Clock::now();
    for (bool explained = false; !done();) {
      job().check_job();
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

  Transport& below_;
};

}  // namespace antichain
