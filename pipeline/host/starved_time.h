// For how long a thread has been ready to run while others had its core, as the system itself counts it: what
// a clock on the wall measures then is not the thread's own work. Waiting for messages, asleep or by polling,
// is not in it.
#pragma once

#include <string>

namespace antichain {

// What the system has counted of one thread; zeros where it counts nothing.
struct CoreTime {
  double ran_s = 0;     // on a core
  double waited_s = 0;  // ready, but without one; a wait is added once it is over
};
CoreTime core_time(const std::string& schedstat_file);

// Of the thread that made it, and from then on.
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

// From this share of a time on, what was measured in it is doubtful: a core of one's own gives some
// hundredths.
constexpr double doubtful_starved_share = 0.2;

}  // namespace antichain
