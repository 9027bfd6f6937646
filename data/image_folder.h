// Reads a folder of image files as two data sets. It has one sub-folder per class, whose sorted names are the
// labels; or it has such a folder for each of the sub-folders train and test.
//
// Files ending in .jpg, .jpeg or .png (in any case) count as images, at any depth below their class; others
// are counted and left out. Images are decoded when they are requested.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/data_set.h"

namespace antichain {

struct FolderOptions {
  int height = 0, width = 0;  // what images are brought to (data/resize.h); 0: all have the size of the first
  // The share of every class for tests, where the folder has no train and test. It is rounded down, but at
  // least one image of two or more.
  double test_fraction = 0.1;
  bool skip_damaged = false;  // decodes every file once to find them
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};  // of that
};

struct FolderSet {
  DataSplits splits;
  int64_t other_files = 0;           // that don't look like images
  std::vector<std::string> damaged;  // sentences, one per file that was left out
};

// The sorted names alone decide which images are for tests. Throws Error naming folder or file: no classes, a
// class without images, a test class that training lacks, nothing to test with, a damaged first image. The
// sets' image() throws Error naming a damaged file, or one of another size.
FolderSet open_image_folder(const std::string& folder, const FolderOptions&);

}  // namespace antichain
