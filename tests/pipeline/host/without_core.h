// This thread is ready to run and hardly ever does: it shares a core with one that never sleeps and comes
// first.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace antichain {

// The calling thread runs on the first core that it may use, and on no other one.
inline void share_a_core() {
  cpu_set_t allowed, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

// The calling thread gets what others leave of that core, some thousandths.
inline void come_last() {
  share_a_core();
  const sched_param none{};
  ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
}

// While this lives, two threads want that core all the time, and one of them gets it.
class StarvedThread {
 public:
  StarvedThread() : first_([this] { share_a_core(), turn(); }), last_([this] { come_last(), turn(); }) {}
  ~StarvedThread() {
    stop_ = true;
    first_.join();
    last_.join();
  }

 private:
  void turn() {
    while (!stop_) {
    }
  }
  std::atomic<bool> stop_{false};
  std::thread first_, last_;
};

}  // namespace antichain
