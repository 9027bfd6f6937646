// A TensorStream writes two tensors that may be too large for memory, "labels" and "images", piece by piece.
// The file is safetensors or HDF5 and reads like any other file of ours.
#pragma once

#include <cstdint>
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
  // Write all labels first, piece by piece, and then the images; a piece holds whole images.
  // Labels are one 64-bit integer an image, or with `classes` so many floats.
  TensorStream(const std::string& file, WeightFormat, std::vector<int64_t> images_shape, int64_t classes = 0);
  void append_labels(std::span<const std::byte>);
  void append(std::span<const float> images);
  void finish();  // gives the file its name. Error when it can't be written.

 private:
  void write(std::span<const std::byte>);
  std::optional<NewFile> plain_;       // safetensors
  std::unique_ptr<ArrayWriter> hdf5_;  // or HDF5
};

}  // namespace antichain
