// A rank's communicators of NCCL: one a lane, each of all ranks of the job. They do not block: a call returns
// while NCCL's own thread launches, or still connects two ranks, and the state is asked for.
//
// The rank's thread calls NCCL, the watchdog's asks for the state, too, and both may find that something is
// wrong. The communicators are aborted then; from then on every call here is an error. NCCL's abort frees
// what peers may still hold, and may wait for theirs: for ever, where one of them hangs (ncclCommAbort: "All
// active ranks are required to call this function"). So threads of their own do it, and nobody waits for them
// but a little.
#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain::cuda {

class Communicators {
 public:
  using Clock = std::chrono::steady_clock;

  // How long a wait may take, and what is called in it, which may throw.
  struct Patience {
    Clock::time_point deadline = Clock::time_point::max();
    std::function<void()> look;
  };

  // Collective. Error where not all ranks came in time.
  Communicators(int device, int lanes, Transport& job, const Patience&);
  ~Communicators();
  Communicators(const Communicators&) = delete;

  // What `work` begins goes as one group of NCCL's. Error, with nothing begun, where one of its calls fails.
  using Work = std::function<void(const std::vector<ncclComm_t>&)>;  // by lane
  void begin(const Work& work);
  // Whether NCCL has launched all that was begun: only then it is in the streams. Error where something is
  // wrong.
  bool launched();
  // Until then: a wait of the rank's for `peer`.
  void settle(int peer, const Patience&);
  // Error where they were aborted.
  void check();

  std::string failure();  // asked now: "" or what is wrong, and they are aborted; waits for nothing
  void give_up();         // aborts them, and nothing has failed here

 private:
  void make(int lanes, const Patience&);
  void fail(const std::string& why);  // under the lock
  void check_under_lock() const;
  void abort();  // under the lock
  bool finalised();

  const int device_;
  Transport& job_;
  const int rank_;
  std::mutex mutex_;
  std::vector<ncclComm_t> all_;  // none from an abort on
  std::string failure_;
};

}  // namespace antichain::cuda
