// For how long a thread was ready to run while others had its core, as the system counts it
// (/proc/PID/task/TID/schedstat). Such time is not the thread's own work. A thread that sleeps, waits for
// messages or is stopped is not ready.
#pragma once

#include <sys/types.h>

#include <map>

#include "framework/file_handle.h"

namespace antichain {

// Counts for the thread that constructs it, from then on.
class StarvedTime {
 public:
  StarvedTime();
  double seconds() const;  // 0 where the system does not count it

 private:
  const FileHandle file_;  // stays open, because a rehearsal reads it at every action
  const double begin_s_;
};

// A measurement is doubtful when the thread lacked a core for at least this fraction of its time. A thread
// with a core to itself lacks it for some hundredths of the time.
constexpr double doubtful_starved_share = 0.2;

// StarvedThreads measures for how long a process was kept from running: the longest time in which one of its
// threads lacked a core.
class StarvedThreads {
 public:
  // Watches all threads of `process` except the calling one, from now on. The process must be on this host
  // and in the same process-id namespace.
  explicit StarvedThreads(pid_t process);

  // Reads the counters again, at most about fifty times a second.
  void look();
  // Returns the time of the thread that lacked a core for longest, as last read; 0 where the system does not
  // count it.
  double seconds() const;

 private:
  struct Thread {
    double waited_before_s = 0;  // when watching began
    double waited_s = 0;         // without a core; the system adds a wait once it is over
    double ran_s = 0;
    bool ready = false;     // when last read
    double unserved_s = 0;  // ready in two consecutive readings, without a core in between
  };
  void read(pid_t thread, double since_last_s);

  const pid_t process_;
  double looked_at_s_;
  std::map<pid_t, Thread> threads_;
};

}  // namespace antichain
