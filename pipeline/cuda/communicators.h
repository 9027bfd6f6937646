// Communicators are a rank's NCCL communicators, one per lane, each with all ranks of the job. They do not
// block: a call returns while NCCL's own thread launches, or still connects two ranks, and the state is
// polled.
//
// The rank's thread calls NCCL. The watchdog's thread polls the state too, and both may find an error. Then
// the communicators are aborted, and every later call here is an error. NCCL's abort frees what peers may
// still hold, and may wait for theirs: forever, where one of them hangs (ncclCommAbort: "All active ranks are
// required to call this function"). So separate threads abort, and the rank waits for them only a short time.
#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/transport/job.h"

namespace antichain::cuda {

class Communicators {
 public:
  using Clock = std::chrono::steady_clock;

  // A Patience is a time limit for a wait, and a function to call during the wait, which may throw.
  struct Patience {
    Clock::time_point deadline = Clock::time_point::max();
    std::function<void()> look;
  };

  // Collective. Throws Error where not all ranks came in time.
  Communicators(int device, int lanes, Job& job, const Patience&);
  ~Communicators();
  Communicators(const Communicators&) = delete;

  // Starts what `work` calls as one NCCL group. Throws Error, with nothing started, where one of its calls
  // fails.
  using Work = std::function<void(const std::vector<ncclComm_t>&)>;  // by lane
  void begin(const Work& work);
  // Returns whether NCCL has launched everything that was started. Only then is the work in the streams.
  // Throws Error where it failed.
  bool launched();
  // Waits until `launched` is true. Meanwhile the watchdog sees this rank wait for `peer`.
  void settle(int peer, const Patience&);
  // Throws Error where the communicators were aborted.
  void check();

  std::string failure();  // returns "" or the error, after which they are aborted; never waits
  void give_up();         // aborts them without recording a failure

 private:
  void make(int lanes, const Patience&);
  void fail(const std::string& why);  // the caller holds the lock
  void check_under_lock() const;
  void abort();  // the caller holds the lock
  bool finalised();

  const int device_;
  Job& job_;
  const int rank_;
  std::mutex mutex_;
  std::vector<ncclComm_t> all_;  // empty after an abort
  std::string failure_;
};

}  // namespace antichain::cuda
