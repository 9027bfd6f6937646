// Reads CIFAR-10 and CIFAR-100 in their official binary layouts, which data/published_sets.h describes. An
// image of CIFAR-100 has the fine label.
//
// Shorter files are a legal subset, and so are fewer of CIFAR-10's. A folder with a file named GENERATED is
// not CIFAR-10 but has its layout; its data set says so in its name.
#pragma once

#include <string>
#include <string_view>

#include "data/data_set.h"
#include "data/published_sets.h"

namespace antichain {

// This file marks a folder of generated images.
constexpr std::string_view generated_marker = "GENERATED";

// Returns both splits of `directory` (or of the archive's folder in it). Reads the files once and keeps the
// labels; images are read when they are requested. Throws Error naming the file when one is missing, its size
// is no multiple of a record's, or a label byte is too large (with the record's number). It also throws where
// the folder has the files of another published set.
ImageSplits read_cifar(const PublishedSet&, const std::string& directory);

}  // namespace antichain
