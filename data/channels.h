// Colour and grey: a data set has images of three channels (red, green, blue) or of one (grey), and becomes
// one of the other kind here.
#pragma once

#include "data/data_set.h"

namespace antichain {

// Returns the splits with images of `channels` channels, 1 or 3. Grey images get three equal channels. Throws
// a usage Error where one channel is asked of colour images, because that would lose the colours.
ImageSplits with_channels(const ImageSplits&, int64_t channels);

// Returns the splits in grey: (19595 R + 38470 G + 7471 B + 2^15) / 2^16, rounded down, as Pillow's
// convert("L") (ITU-R BT.601's luma). Images of equal channels keep their numbers.
ImageSplits in_grey(const ImageSplits&);

}  // namespace antichain
