// A StateHash is a fingerprint of everything that a training run learned. Two runs that end with the same one
// hold the same bits in every parameter and buffer, whatever their plans.
#pragma once

#include <map>
#include <string>

#include "pipeline/stage/rank_model.h"
#include "pipeline/transport/job.h"

namespace antichain {

struct StateHash {
  std::map<std::string, std::string> tensors;  // full name → hash of its plain bytes
  std::string all;                             // over names and hashes in name order
};

// Collective; the result is on rank 0, empty elsewhere.
StateHash state_hash(const RankModel&, Job&);

}  // namespace antichain
