// Reads and writes weights as HDF5 (The HDF Group, "HDF5 File Format Specification", version 3): one dataset
// per tensor, by name, in the root group, or by path where the name has slashes. h5py reads
// them as h5py.File("weights.h5")["conv1.weight"][:].
//
// The files we write are made in memory. They have checksums over structure and data, and no dates, so that
// equal weights give equal bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/weights.h"

namespace antichain {

bool is_hdf5(const std::string& bytes);  // begins like one
std::string to_hdf5(const Weights&);
// Returns the tensors in the order of creation where the file keeps it, otherwise by name. Throws Error
// naming `origin` and the dataset. The HDF5 library itself is trusted with the bytes: files of unknown origin
// are safer as safetensors. Unpacked, the tensors may have `most_bytes` together, and are not read beyond
// that.
Weights from_hdf5(const std::string& bytes, const std::string& origin, int64_t most_bytes = INT64_MAX);

// Describes one tensor of a large file, for checkpoints: such a file is never held in memory as a whole. HDF5
// lays the file out and makes its structures in memory, where nothing fails. The values are passed on one
// after the other, so that the writer sees every failure of a disk itself; HDF5 does not report them. The
// data have no checksums of their own, because a checkpoint's manifest has each file's hash.
struct Hdf5Item {
  std::string name, group;       // in the root group, or a group in it
  std::vector<int64_t> shape;    // of float32
  std::optional<int64_t> count;  // given: one int64 instead of a tensor
};
// `values(i)` returns the values of item i, valid until the next call; `sink` receives the file's bytes in
// order. Safe from several threads.
void write_hdf5(const std::vector<Hdf5Item>&, const std::function<const float*(size_t)>& values,
                const std::function<void(std::string_view)>& sink);

// Returns some tensors of a file by their paths ("momentum/conv1.weight"), which become their names. Throws
// Error as above.
std::vector<NamedTensor> read_hdf5(const std::string& bytes, const std::vector<std::string>& paths,
                                   const std::string& origin);

}  // namespace antichain
