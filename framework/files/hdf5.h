// Weights as HDF5 (The HDF Group, "HDF5 File Format Specification", version 3): one dataset per tensor, by
// name, in the root group, as h5py reads it: h5py.File("weights.h5")["conv1.weight"][:].
//
// What we write is made in memory, has checksums over its structure and its data, and no dates: the same
// weights are the same bytes.
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
// In the order of creation where the file keeps it, else by name. Error naming `origin` and the dataset. The
// library itself is trusted with the bytes: files of unknown origin are safer as safetensors. Unpacked, the
// tensors may have `most_bytes` together, and are not read beyond that.
Weights from_hdf5(const std::string& bytes, const std::string& origin, int64_t most_bytes = INT64_MAX);

// A file of large tensors, for checkpoints: it is never held as a whole. HDF5 lays the file out and makes its
// structures in memory, where nothing fails; the values are passed on as they are reached, so that what
// writes them sees every failure of a disk itself, which HDF5 does not tell. Data have no checksums of their
// own: a checkpoint's manifest has each file's hash.
struct Hdf5Item {
  std::string name, group;       // in the root group, or a group in it
  std::vector<int64_t> shape;    // of float32
  std::optional<int64_t> count;  // given: no tensor but one int64
};
// `values(i)` are those of item i, valid until the next call; `sink` gets the file's bytes in their order.
// Safe from several threads.
void write_hdf5(const std::vector<Hdf5Item>&, const std::function<const float*(size_t)>& values,
                const std::function<void(std::string_view)>& sink);

// Some tensors of a file by their paths ("momentum/conv1.weight"), which become their names. Error as above.
std::vector<NamedTensor> read_hdf5(const std::string& bytes, const std::vector<std::string>& paths,
                                   const std::string& origin);

}  // namespace antichain
