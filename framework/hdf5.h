// Weights as HDF5 (The HDF Group, "HDF5 File Format Specification", version 3): one dataset per tensor, by name, in the
// root group, as h5py reads it: h5py.File("weights.h5")["conv1.weight"][:].
//
// What we write is made in memory, has checksums over its structure and its data, and no dates: the same weights are
// the same bytes.
#pragma once

#include <string>

#include "framework/weights.h"

namespace antichain {

bool is_hdf5(const std::string& bytes);  // begins like one
std::string to_hdf5(const Weights&);
// In the order of creation where the file keeps it, else by name. Error naming `origin` and the dataset. The library
// itself is trusted with the bytes: files of unknown origin are safer as safetensors.
Weights from_hdf5(const std::string& bytes, const std::string& origin);

}  // namespace antichain
