// A StarvedTime measures for how long a thread was ready to run while others had its core, as the system
// counts it. Wall-clock time in that state is not the thread's own work. Waiting for messages, asleep or by
// polling, is not included.
#pragma once

#include <string>

namespace antichain {

// A CoreTime is what the system has counted for one thread; it is zero where the system counts nothing.
struct CoreTime {
  double ran_s = 0;     // on a core
  double waited_s = 0;  // ready, but without one; a wait is added once it is over
};
CoreTime core_time(const std::string& schedstat_file);

// Counts for the thread that constructs it, from then on.
class StarvedTime {
 public:
  StarvedTime();
  ~StarvedTime();
  StarvedTime(const StarvedTime&) = delete;

  double seconds() const;  // 0 where the system does not count it

 private:
  double all_s() const;
  int file_ = -1;
  double begin_s_ = 0;
};

// A measurement is doubtful when the thread lacked a core for at least this fraction of its time. A thread
// with a core to itself shows some hundredths.
constexpr double doubtful_starved_share = 0.2;

}  // namespace antichain
