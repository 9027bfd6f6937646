// These functions bring weights into stages and out of them: from a file into the tensors that live on this
// rank, in the layouts of its device, and back, gathered from all ranks.
#pragma once

#include <string>
#include <vector>

#include "framework/files/state_dict.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/transport/job.h"

namespace antichain {

// Collective. Rank 0 reads the file; the others need not have it. Throws Error on every rank.
Weights broadcast_weights(const std::string& file, const Graph& network, Job&);

// Throws Error (ExitCode::not_a_number) naming the first of these tensors that has a number with which
// nothing can be computed.
void check_numbers(const Fitted&, const Weights&, const std::string& origin);

// Sets the parameters and buffers of this stage, which are looked at as above. The file is compared with the
// whole network, so every rank throws the same Error, or returns the same list of what was skipped
// (framework/files/state_dict.h).
std::vector<std::string> load_weights(RankModel&, const Weights&, Fit, const std::string& origin);

// Returns the parameters and buffers of this stage, in the order of its nodes.
Weights weights_of(RankModel&);
// Returns the gradients of its parameters, by their names.
Weights gradients_of(RankModel&);

// Collective. Returns what is wrong with the first tensor of the whole network that has such a number, or "".
std::string first_bad_number(RankModel&, Job&);

// Collective. Returns those of all stages in the network's order on rank 0, and nothing elsewhere.
Weights gather_weights(RankModel&, Job&);

}  // namespace antichain
