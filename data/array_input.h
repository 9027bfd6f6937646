// An ArrayInput reads one array of a data set's samples as an input of a network wants it.
//
//   stored   wanted    becomes
//   u8       float32   (byte / 255 − mean) / deviation where the array has pixels, else the whole number
//   u8       int32     the whole number
//   i32      float32   the whole number; one that float32 does not have is refused
//
// Extents of 1 do not count: a number for each sample fits N x 1, and a plane fits an image of one channel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/data_set.h"
#include "data/normaliser.h"

namespace antichain {

class ArrayInput {
 public:
  // `wanted` is the input's tensor, samples first. Throws Error when the set has no array of that name, or it
  // has another form.
  ArrayInput(std::shared_ptr<const DataSet>, const std::string& name, const TensorSpec& wanted);

  // Writes the array of a sample to `out`, which has the bytes of one sample. Throws Error naming the sample
  // when a number does not fit, and as DataSet::read().
  void read(int64_t index, std::byte* out) const;
  // Writes what a sample has that only pads the last batch: −1 where the numbers are whole, else 0.
  void pad(std::byte* out) const;
  int64_t sample_bytes() const { return elements_ * size_of(wanted_); }

 private:
  std::shared_ptr<const DataSet> data_;
  size_t array_ = 0;
  SampleArray stored_;
  DType wanted_;
  int64_t elements_ = 0;
  Normaliser normaliser_;
  mutable std::vector<std::byte> row_;  // of one sample, as it is stored
};

// Return the number of the set's array of that name, or its place among the names of a set's arrays. Throw
// Error when there is none.
size_t find_array(const DataSet&, const std::string& name);
size_t find_array(const std::vector<std::string>& names, const std::string& name);

}  // namespace antichain
