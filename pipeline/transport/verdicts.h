// What becomes of something that all ranks try at the same time, and that waits for the others meanwhile: who
// fails tells them at once, so that nobody waits for a rank that has gone on.
#pragma once

#include <vector>

#include "pipeline/transport/transport.h"

namespace antichain {

class Verdicts {
 public:
  struct OthersFailed {};

  explicit Verdicts(Transport& job);  // collective, and so is `share`
  // Called while this rank tries: throws OthersFailed once a rank has given its verdict, and it was bad.
  void look();
  // Gives this rank's and waits for everybody's. Whether all are good.
  bool share(bool good);

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
