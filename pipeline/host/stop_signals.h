// Signals that ask a run to stop where nothing is lost: SIGUSR1, SIGTERM, SIGINT, and SIGXCPU, which comes
// every second once the time of ulimit -t is over. The first is remembered, and the ranks agree on the step
// after which they stop (pipeline/train/step_boundary.h). Once one of SIGTERM and SIGINT was heard, another
// one ends the process at once. Before the first step there is nothing to lose: those two then end it at
// once, too.
//
// mpirun passes SIGUSR1 on to all ranks; SIGTERM gives them one second.
#pragma once

#include <string>

namespace antichain {

// Listens while it lives; one at a time in a process.
class StopRequests {
 public:
  // What hears signals is taken away with it, or stays to the end of the process: whose code is known by
  // then, and no signal changes it but a second one of SIGTERM and SIGINT.
  enum class Life { scope, process };
  explicit StopRequests(Life = Life::scope);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;

  static void training_begins();  // from now on there is something to lose
  static int heard();             // the first signal's number, or 0; what any rank of the process may ask

 private:
  const Life life_;
};

std::string signal_name(int signal);  // "SIGUSR1"

}  // namespace antichain
