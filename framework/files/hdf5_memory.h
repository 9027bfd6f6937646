// Opens HDF5 files in memory, and turns HDF5's failures there into Errors. Call these functions within a
// Session.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

namespace antichain::hdf5 {

// Makes a file that grows in `bytes`, in the format whose structures all have checksums (HDF5 1.10, 2016).
// Structures are allocated in blocks of `structure_bytes`.
hid_t create_in_memory(std::string& bytes, int64_t structure_bytes = 2048);

// Opens a file for reading only: nothing is written to `bytes`. Throws Error naming `origin` when HDF5 can't
// open it.
hid_t open_in_memory(std::string& bytes, const std::string& origin);

// Returns the handle of an object to write; throws Error where HDF5 could not make it.
hid_t written(hid_t id, const std::string& what);

}  // namespace antichain::hdf5
