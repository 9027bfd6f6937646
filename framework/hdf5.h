// Weights as HDF5 (The HDF Group, "HDF5 File Format Specification", version 3): one dataset per tensor, by name, in the
// root group, as h5py reads it: h5py.File("weights.h5")["conv1.weight"][:].
//
// What we write is made in memory, has checksums over its structure and its data, and no dates: the same weights are
// the same bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/weights.h"

namespace antichain {

bool is_hdf5(const std::string& bytes);  // begins like one
std::string to_hdf5(const Weights&);
// In the order of creation where the file keeps it, else by name. Error naming `origin` and the dataset. The library
// itself is trusted with the bytes: files of unknown origin are safer as safetensors.
Weights from_hdf5(const std::string& bytes, const std::string& origin);

// A file made tensor by tensor, so that no more than one is held besides: for checkpoints, whose manifests have the hash of
// every file, so that the data need no checksums of their own. Safe from several threads, each with a file of its own.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(int64_t expected_bytes = 0);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  // Into the root group, or a group in it.
  void add(const NamedTensor&, const std::string& group = {});
  std::string finish();  // the file's bytes; once, and nothing after it

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

// Some tensors of a file by their paths ("momentum/conv1.weight"), which become their names. Error as above.
std::vector<NamedTensor> read_hdf5(const std::string& bytes, const std::vector<std::string>& paths,
                                   const std::string& origin);

}  // namespace antichain
