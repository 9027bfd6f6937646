// This table has the published data sets that are known by name: where they are found, and the layout of
// their files. All have records of label bytes and 3072 pixel bytes (red, green and blue planes, row-major,
// 32 x 32): Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_set.h"

namespace antichain {

struct PublishedSet {
  static constexpr int64_t side = 32, pixel_bytes = 3 * side * side;

  std::string_view option;       // cifar10
  std::string_view name;         // CIFAR-10
  std::string_view environment;  // the variable that names its folder
  std::string_view url, md5;     // of the archive
  std::string_view folder;       // within the archive
  std::string_view other_forms;  // what the names of all its archives, and of folders in them, begin with
  std::string_view names_file;   // has the name of each class on a line
  std::vector<std::string> train_files;
  std::string test_file;
  int64_t train_images, test_images;
  int groups;   // classes of the label byte that precedes the class; 0: there is no such byte
  int classes;  // of the last label byte
  Normalisation normalisation;
  bool generated_instead;  // whether generated images, which have its layout, may take its place

  int label_bytes() const { return groups > 0 ? 2 : 1; }
  int64_t record_bytes() const { return label_bytes() + pixel_bytes; }
};

std::span<const PublishedSet> published_sets();
const PublishedSet& cifar10();
const PublishedSet& cifar100();

// Returns the set of the option's name, or nullptr.
const PublishedSet* published_set(std::string_view option);

// Returns `directory` itself, or the archive's folder in it where there is one.
std::string folder_of(const PublishedSet&, const std::string& directory);

// Returns the set whose first files are in `directory` or in the archive's folder in it. Where there are
// none, it returns `expected`, and where there are those of several sets, `expected` is preferred.
const PublishedSet& published_set_in(const std::string& directory, const PublishedSet& expected = cifar10());

}  // namespace antichain
