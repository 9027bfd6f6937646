// These signals ask a run to stop without losing anything: SIGUSR1, SIGTERM, SIGINT, SIGHUP (not under nohup)
// and SIGXCPU, which comes every second once the time of ulimit -t is over. The first one is remembered, and
// the ranks agree on the step after which they stop (pipeline/train/step_boundary.h). After a SIGTERM or
// SIGINT, another one of the two ends the process at once. Before the first step there is nothing to lose, so
// the first of these two, or a SIGHUP, ends it at once.
//
// mpirun forwards SIGUSR1 to all ranks. After forwarding SIGTERM it leaves them one second.
#pragma once

#include <string>

namespace antichain {

// A StopRequests receives these signals while it lives. A process may have one at a time.
class StopRequests {
 public:
  // With `scope` the handlers are removed together with this object. With `process` they stay until the
  // process ends: its exit code is known by then, and only a second SIGTERM or SIGINT can still change it.
  enum class Life { scope, process };
  explicit StopRequests(Life = Life::scope);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;

  static void work_begins();  // from now on there is something to lose
  static int heard();         // the first signal's number, or 0; any rank of the process may ask
  // Ends work that has nothing to save: throws an Error naming the signal, with code 128 + its number. It
  // does nothing where there was no signal.
  static void end_if_heard();

 private:
  const Life life_;
};

std::string signal_name(int signal);  // "SIGUSR1"

}  // namespace antichain
