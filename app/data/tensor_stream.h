// A TensorStream writes tensors that may be too large for memory, one after the other, each piece by piece.
// The file is safetensors or HDF5 and reads like any other file of ours.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/files/hdf5_arrays.h"
#include "framework/files/weights.h"
#include "framework/new_file.h"

namespace antichain {

class TensorStream {
 public:
  // The tensors have int64 or float32, those of int64 first: so each is aligned.
  TensorStream(const std::string& file, WeightFormat, std::vector<ArraySpec>);
  // Appends whole rows of a tensor. The tensors before it are whole.
  void append(size_t tensor, std::span<const std::byte>);
  void finish();  // gives the file its name. Error when it can't be written.

 private:
  std::optional<NewFile> plain_;       // safetensors
  std::unique_ptr<ArrayWriter> hdf5_;  // or HDF5
};

}  // namespace antichain
