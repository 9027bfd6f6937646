// Reads a user's data set from an HDF5 file (h5py writes one in four lines):
//
//   /train/images, /test/images   uint8, N x C x H x W or N x H x W x C with C = 3, or 1 (grey: all three
//                                 channels get it), or N x H x W
//   /train/labels, /test/labels   N integers, 0 … classes − 1
//
// and attributes of the root, all optional: layout ("NCHW" or "NHWC"; needed only where both axes could be
// the channels), class_names (one text per class), name (of the set), mean and std (3 numbers each, or 1, of
// pixels scaled to [0, 1]).
//
// Images stay in the file and are read when they are requested, so the set may be larger than memory. Rows
// that are contiguous in the file, as `antichain data pack` writes them, are read by one pread each; chunks
// pass through HDF5's cache (at most 256 MiB per split).
#pragma once

#include <string>

#include "data/data_set.h"

namespace antichain {

// Without class_names, the largest label says how many classes there are, named "class 0" …. Without mean and
// std, they are computed from up to 4,096 training images, evenly spread, in whole numbers, so they are the
// same on every rank. Throws Error when the file is not as above, or a split is missing or empty. The error
// names the file, and the record where a label is out of range.
ImageSplits read_hdf5_set(const std::string& file);

}  // namespace antichain
