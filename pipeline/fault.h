// Faults on demand, for tests of everything that must survive them. The environment variable ANTICHAIN_FAULT says
// what happens to whom and when; unset, nothing does:
//
//   hang:rank=1:step=3    the rank sleeps for ever
//   stop:…                its process is stopped (SIGSTOP) until somebody continues it
//   exit:…                its process is killed (SIGKILL)
//   throw:…               it throws an Error
#pragma once

#include <cstdint>

namespace antichain {

// Called by each rank at the begin of every step. Error when the variable can't be understood.
void fault_point(int rank, int64_t step);

}  // namespace antichain
