// Reads a folder of image files as two data sets. It has one sub-folder per class, whose sorted names are the
// labels; or it has such a folder for each of its splits: train (or training), val (valid, validation) and
// test (testing), in any case.
//
// Files ending in .jpg, .jpeg or .png (in any case) count as images, at any depth below their class; others
// are counted and left out. Hidden files and folders, and those that systems leave behind (.git, ._x.png,
// __MACOSX, lost+found), are nothing at all. Images are decoded when they are requested.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/data_set.h"

namespace antichain {

struct FolderOptions {
  int height = 0,
      width = 0;  // what images are brought to (data/image_file.h); 0: all have the size of the first
  // The share of every class for tests, where the folder has no images for tests [0.1]. It is rounded down,
  // but at least one image of two or more.
  std::optional<double> test_fraction;
  bool skip_damaged = false;  // decodes every file once to find them
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};  // of that
};

struct FolderSet {
  ImageSplits splits;
  int64_t other_files = 0;           // that don't look like images
  std::vector<std::string> notes;    // sentences on what became of folders and classes
  std::vector<std::string> damaged;  // sentences, one per file that was left out
};

// Without a split for tests, the sorted names alone decide which images are for tests. Images of val are for
// tests where there is no test, and left out, with a note, where there is. Throws Error naming folder or
// file: no classes, a class without images, classes beside splits or above them, a test class that training
// lacks, nothing to test with, a damaged first image. The sets' image() throws Error naming a damaged file,
// or one of another size.
FolderSet open_image_folder(const std::string& folder, const FolderOptions&);

}  // namespace antichain
