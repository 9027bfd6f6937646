// Reads scikit-learn's handwritten digits (digits.csv.gz, 57 kB; Alpaydin and Kaynak, "Optical Recognition of
// Handwritten Digits", UCI Machine Learning Repository, 1998): 1,797 grey images of 8 x 8 pixels, in ten
// classes. They are the smallest real set of images there is: a network learns them in seconds.
#pragma once

#include <string>

#include "data/data_set.h"

namespace antichain {

// Each line of the file, packed by gzip or not, has the 64 pixels of an image, 0 to 16, and its digit. Pixels
// become bytes: 16 is 255. The last 360 images are for tests. Throws Error naming the file, and the line that
// is not so.
ImageSplits read_digits(const std::string& file);

}  // namespace antichain
