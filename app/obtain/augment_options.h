// These options say how training images are augmented.
#pragma once

#include "app/cli/cli_forward.h"
#include "data/augment.h"

namespace antichain {

// Adds those about one image, and those that mix two.
void add_augment_options(CLI::App&, AugmentOptions&);
// Turns all of them off, for samples that are no images with one label. Throws a usage Error where the user
// asked for one.
void leave_out_augmentation(const CLI::App&, AugmentOptions&);

}  // namespace antichain
