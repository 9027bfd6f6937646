// A JointAttempt is work that all ranks try at the same time, and in which they wait for each other. A rank
// that fails tells the others at once, so that none waits for a rank that has gone on.
#pragma once

#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

class JointAttempt {
 public:
  struct OthersFailed {};

  explicit JointAttempt(Transport& job);  // collective, and so is `all_succeeded`
  // Called while this rank tries. Throws OthersFailed once any rank has said that it failed.
  void look();
  // Tells all ranks whether this one has succeeded, and waits for all others. Returns whether all have.
  bool all_succeeded(bool good);

 private:
  struct Other {
    Tensor good;
    Transport::Ticket ticket = 0;
    bool came = false;
  };
  void take(Other&);

  Transport& job_;
  std::vector<Other> others_;
};

}  // namespace antichain
