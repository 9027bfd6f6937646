// The weights of a checkpoint, however many stages wrote it: to test, export or start from a network in
// training.
#pragma once

#include <string>

#include "framework/files/checkpoint.h"
#include "framework/files/weights.h"

namespace antichain {

// Parameters and buffers, without momentum, of a checkpoint (RUN/step-…) or of the newest whole one of a
// folder of them (RUN). Damaged when a file is not what was written; Error when there is none.
Weights read_checkpoint_weights(const std::string& path);

// What the checkpoint says of its model: name, form, classes, … Error likewise.
Facts read_checkpoint_model(const std::string& path);

}  // namespace antichain
