// PeerPairs says which ranks can copy into each other's device memory. The ranks find out by trying, because
// containers, divided GPUs and machines without peer access fail only then. All ranks hold the same answer.
#pragma once

#include <string>
#include <vector>

#include "pipeline/device/device_streams.h"
#include "pipeline/transport/job.h"

namespace antichain {

class PeerPairs {
 public:
  // why_not[a][b]: why rank a can't write where rank b is, or "". Ranks of different hosts are no pair,
  // whatever it says.
  PeerPairs(std::vector<std::string> hosts, const std::vector<std::vector<std::string>>& why_not);

  bool direct(int a, int b) const { return direct_[size_t(a)][size_t(b)]; }
  bool any() const;
  bool all() const;
  bool one_host() const;
  // Returns the first pair on one host that can't, and how many more there are: "rank 1 on node7 can't write
  // to rank 0's device (reason)". Returns "" where all pairs can.
  const std::string& exception() const { return exception_; }

 private:
  const std::vector<std::string> hosts_;
  std::vector<std::vector<bool>> direct_;
  std::string exception_;
};

// Collective.
PeerPairs find_pairs(Job& job, PeerStream&);

}  // namespace antichain
