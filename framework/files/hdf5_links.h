// Finds a dataset of an HDF5 file by its path, within the file.
#pragma once

#include <hdf5.h>

#include <string>

namespace antichain::hdf5 {

// Returns the dataset's path by hard links alone, with every soft link resolved; "" where there is none.
// Throws Error naming `name`, the file, when the path leads through a link to another file, or a soft link
// leads nowhere. Needs a Session.
std::string resolved(hid_t file, const std::string& path, const std::string& name);

}  // namespace antichain::hdf5
