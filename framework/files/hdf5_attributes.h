// Reads attributes of objects in an HDF5 file: texts and numbers.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

namespace antichain::hdf5 {

// Returns the attribute of the object at `path` ("/" is the root); nothing when there is none of the name.
// Throws Error naming `file_name` when it is of another kind. A single value counts as a list of one. Opens a
// Session itself.
std::optional<std::vector<std::string>> string_attribute(hid_t file, const std::string& file_name,
                                                         const std::string& path, const std::string& name);
std::optional<std::vector<double>> number_attribute(hid_t file, const std::string& file_name,
                                                    const std::string& path, const std::string& name);

}  // namespace antichain::hdf5
