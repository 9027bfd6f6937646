// Verdicts are for something that all ranks try at the same time and that waits for the other ranks. A rank
// that fails tells them at once, so that none waits for a rank that has gone on.
#pragma once

#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

class Verdicts {
 public:
  struct OthersFailed {};

  explicit Verdicts(Transport& job);  // collective, and so is `all_good`
  // Called while this rank tries. Throws OthersFailed once any rank has given a bad verdict.
  void look();
  // Gives this rank's verdict and waits for all others. Returns whether all are good.
  bool all_good(bool good);

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
