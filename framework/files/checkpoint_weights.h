// Reads the weights of a checkpoint, however many stages wrote it, so that a network in training can be
// tested, exported or used as initial weights.
#pragma once

#include <string>

#include "framework/files/checkpoint.h"
#include "framework/files/weights.h"

namespace antichain {

// Returns parameters and buffers, without slots, of a checkpoint (RUN/step-…) or of the newest whole one
// of a folder of them (RUN). Throws Damaged when a file is not what was written, Error when there is none.
Weights read_checkpoint_weights(const std::string& path);

// Returns what the checkpoint says of its model: name, form, classes, …. Throws as above.
Facts read_checkpoint_model(const std::string& path);

}  // namespace antichain
