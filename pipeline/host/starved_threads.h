// StarvedThreads tells for how long a process was kept from running: the longest time that one of its threads
// was ready to run while others had its core. The system counts it for each thread
// (/proc/PID/task/TID/schedstat). A thread that sleeps, waits for messages or is stopped is not ready.
#pragma once

#include <sys/types.h>

#include <map>

namespace antichain {

class StarvedThreads {
 public:
  // Of the threads of `process`, which is on this host and sees the same process numbers, but for the calling
  // one; from now on.
  explicit StarvedThreads(pid_t process);

  // Looks again, at most some fifty times a second.
  void look();
  // Of the thread that had no core for longest, when last looked; 0 where the system does not count it.
  double seconds() const;

 private:
  struct Thread {
    double waited_before_s = 0;  // when counting began
    double waited_s = 0;         // without a core; the system adds a wait once it is over
    double ran_s = 0;
    bool ready = false;     // when last looked at
    double unserved_s = 0;  // ready from one look to the next, and given no core in between
  };
  void read(pid_t thread, double since_last_s);

  const pid_t process_;
  double looked_at_s_;
  std::map<pid_t, Thread> threads_;
};

}  // namespace antichain
