// Generates an image set that stands in for CIFAR-10 where that is unavailable: ten classes of 32 x 32 colour
// images in the same binary layout. Each image is a texture or a figure at a random place, size and colour
// under noise. The classes can be learned but not trivially: neither colour nor position tells the class.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace antichain {

struct SyntheticOptions {
  int64_t train_images = 20'000, test_images = 4'000;
  uint64_t seed = 1;
};

// Writes the files into `folder` (made if absent), with a marker file GENERATED that makes readers label the
// set. The same options write the same bytes. Throws Error naming the path when it can't be written.
void write_synthetic(const std::string& folder, const SyntheticOptions& options = {});

// Returns whether `folder` has all the files that these options write, with all their bytes.
bool is_whole_synthetic(const std::string& folder, const SyntheticOptions& options);

// Draws one image: 3 planes of 32 x 32, a pure function of its arguments. `index` counts over both splits.
void draw_synthetic(uint64_t seed, int64_t index, int label, std::span<uint8_t> pixels);

}  // namespace antichain
