// These options say how training images are augmented.
#pragma once

#include "app/cli/cli_forward.h"
#include "data/augment.h"

namespace antichain {

// Adds those about one image, and those that mix two.
void add_augment_options(CLI::App&, AugmentOptions&);

}  // namespace antichain
