// Says what an object of an HDF5 file is besides its values: where a path leads, which attributes it has, and
// what a virtual dataset is put together from. HDF5 itself reads zeros where a source is missing, so
// everything is checked before.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace antichain::hdf5 {

// Returns the dataset's path by hard links alone, with every soft link resolved; "" where there is none.
// Throws Error naming `name`, the file, when the path leads through a link to another file, or a soft link
// leads nowhere. Needs a Session.
std::string resolved(hid_t file, const std::string& path, const std::string& name);

// Returns the attribute of the object at `path` ("/" is the root); nothing when there is none of the name.
// Throws Error naming `file_name` when it is of another kind. A single value counts as a list of one. Opens a
// Session itself.
std::optional<std::vector<std::string>> string_attribute(hid_t file, const std::string& file_name,
                                                         const std::string& path, const std::string& name);
std::optional<std::vector<double>> number_attribute(hid_t file, const std::string& file_name,
                                                    const std::string& path, const std::string& name);

struct VirtualSource {
  std::string file, dataset;  // the file as it is opened
  int64_t values;             // that are taken of the dataset
  std::vector<int64_t> most;  // the shape that it has at least; none: all of it is taken
  bool fits(const std::vector<int64_t>& shape) const;
};

// Returns the sources in the order of the mappings. Throws Error naming `file` and `path` when they do not
// cover the dataset, are of no fixed number, or lie in more than 128 files. Needs a Session.
std::vector<VirtualSource> virtual_sources(hid_t dataset, hid_t creation, const std::string& file,
                                           const std::string& path);

// Reads an element of each source, so that HDF5 opens them all now, and keeps them open. Needs a Session.
void open_sources(hid_t dataset, hid_t creation, const std::string& file, const std::string& path);

}  // namespace antichain::hdf5
