// HDF5 files in memory, and what to do about HDF5's failures there. Within a Session.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

namespace antichain::hdf5 {

// A file that grows in `bytes`, in the format whose structures all have checksums (HDF5 1.10, 2016). As many
// bytes of structures lie together.
hid_t create_in_memory(std::string& bytes, int64_t structure_bytes = 2048);

// Nothing is written to `bytes`: the file is read only. Error naming `origin` when HDF5 can't open it.
hid_t open_in_memory(std::string& bytes, const std::string& origin);

// The driver's memory ends elsewhere than the file; where that is, stands in the superblock (versions 2 and
// 3).
uint64_t file_size(const std::string& bytes);

// What reading throws: origin, what, and HDF5's own reason.
[[noreturn]] void fail(const std::string& origin, const std::string& what);
// A handle of something to write, or Error.
hid_t written(hid_t id, const std::string& what);

}  // namespace antichain::hdf5
