// Reads the weights of a checkpoint, however many stages wrote it, so that a network in training can be
// tested, exported or used as initial weights.
//
// A path names a checkpoint (RUN/step-…), or a folder of checkpoints (RUN), of which the newest whole one is
// read. If the path ends in /ema, the averages that --ema keeps take the place of the parameters.
#pragma once

#include <string>

#include "framework/files/checkpoint.h"
#include "framework/files/weights.h"

namespace antichain {

bool is_in_checkpoint(const std::string& path);

// Returns parameters and buffers, without other slots. Throws Damaged when a file is not what was written,
// Error when there is no checkpoint, or it has no averages.
Weights read_checkpoint_weights(const std::string& path);

// Returns what the checkpoint says of its model: name, form, classes, …. Throws as above.
Facts read_checkpoint_model(const std::string& path);

}  // namespace antichain
