// Resizes an image: cuts out the largest middle part of the wanted proportions and scales it, so that nothing
// is distorted and no border is added.
//
// The filter is a triangle as wide as a pixel of the coarser side, so it interpolates linearly when it
// enlarges and averages over all pixels when it shrinks (the "bilinear" of Pillow; Turkowski, "Filters for
// common resampling tasks", Graphics Gems, 1990).
#pragma once

#include "data/image_file.h"

namespace antichain {

Image resize(const Image&, int height, int width);  // an image of that size is returned as it is

}  // namespace antichain
