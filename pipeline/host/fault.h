// Faults on demand, for tests of everything that must survive them. The environment variable ANTICHAIN_FAULT
// says what happens to whom and when; unset, nothing does:
//
//   hang:rank=1:step=3    the rank sleeps for ever
//   stop:…                its process is stopped (SIGSTOP) until somebody continues it
//   exit:…                its process is killed (SIGKILL)
//   throw:…               it throws an Error
//   nan:rank=1:step=3:microbatch=2:activation:NODE    the node's output becomes NaNs; gradient instead of
//                         activation: of the gradient it gives its first input. Rank -1 is whichever has the
//                         node.
//
// Steps count from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace antichain {

// Called by each rank at the begin of every step. Error when the variable can't be understood.
void fault_point(int rank, int64_t step);

// What a rank has to spoil in this step, if anything.
struct Poison {
  int microbatch = 0;
  bool gradient = false;
  std::string node;
};
std::optional<Poison> poison_for(int rank, int64_t step);

}  // namespace antichain
