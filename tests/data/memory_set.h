// A MemorySet has 32 x 32 images in memory for tests. Image i is filled with the byte i % 251, and its label
// is i % 10.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "data/data_set.h"
#include "framework/error.h"

namespace antichain {

class MemorySet : public ImageSet {
 public:
  explicit MemorySet(int64_t size, int64_t broken = -1) : size_(size), broken_(broken) {}
  std::string name() const override { return "in memory"; }
  int64_t size() const override { return size_; }
  Shape image_shape() const override { return {3, 32, 32}; }
  std::span<const std::string> class_names() const override { return names_; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    ++decoded;
    if (index == broken_) throw Error("image " + std::to_string(index) + " is broken");
    std::fill(out.begin(), out.end(), uint8_t(index % 251));
  }
  int label(int64_t index) const override { return int(index % 10); }

  mutable std::atomic<int> decoded = 0;

 private:
  int64_t size_, broken_;
  std::array<std::string, 10> names_;
};

}  // namespace antichain
