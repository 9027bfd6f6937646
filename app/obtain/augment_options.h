// These options say how training images are augmented.
#pragma once

#include "app/cli/cli_forward.h"
#include "data/augment.h"

namespace antichain {

void add_augment_options(CLI::App&, AugmentOptions&);

}  // namespace antichain
