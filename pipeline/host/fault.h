// This file injects faults on demand, for tests of everything that must survive them. The environment
// variable ANTICHAIN_FAULT names the fault, the rank and the step. Nothing happens when it is unset.
//
//   hang:rank=1:step=3    the rank sleeps forever
//   stop:…                its process is stopped (SIGSTOP) until somebody continues it
//   exit:…                its process is killed (SIGKILL)
//   throw:…               it throws an Error
//   slow:rank=1:step=3    from this step on the rank takes three times as long for what it computes
//   nan:rank=1:step=3:microbatch=2:activation:NODE    the node's output becomes NaNs. With gradient instead
//                         of activation, the gradient of its first input does. Rank -1 is the rank that has
//                         the node.
//
// Steps count from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace antichain {

// Every rank calls this at the beginning of every step. Throws Error when the variable can't be understood.
void fault_point(int rank, int64_t step);

// Returns how many times longer this rank has to take for its computing in this step: 0, or what the fault
// says.
double delay_for(int rank, int64_t step);

// A Poison says which tensor this rank has to spoil in this step, if any.
struct Poison {
  int microbatch = 0;
  bool gradient = false;
  std::string node;
};
std::optional<Poison> poison_for(int rank, int64_t step);

}  // namespace antichain
