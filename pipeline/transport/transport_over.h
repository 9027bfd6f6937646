// A TransportOver uses another transport of the same job, and moves tensors in another way.
#pragma once

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "pipeline/transport/transport.h"

namespace antichain {

class TransportOver : public Transport {
 public:
  explicit TransportOver(Transport& below) : Transport(below.job()), below_(below) {}  // it must outlive this

  void name_messages(Namer namer) override {
    Transport::name_messages(namer);
    below_.name_messages(std::move(namer));
  }

 protected:
  // Calls `done`, which must make progress, until it returns true. The watchdog learns which rank this waits
  // for, and what for once the wait has lasted a while.
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
