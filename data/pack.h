// Writes a data set into an HDF5 file of the layout that data/hdf5_set.h describes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/data_set.h"

namespace antichain {

struct PackOptions {
  bool interleaved = false;                    // N x H x W x C
  bool compressed = false;                     // each image by itself: smaller, and slower to read
  std::optional<Normalisation> normalisation;  // given with the set; else that of the training images
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};  // images
};

struct Packed {
  bool all_grey = true;  // whether the images of three channels have equal ones
};

// The file is whole and synced, or does not exist. Equal sets make equal bytes. Throws Error naming the file.
Packed pack(const ImageSplits&, const std::string& file, const PackOptions& = {});

}  // namespace antichain
