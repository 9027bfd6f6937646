// A data set is a numbered collection of samples. Each has the same named arrays, which a network's inputs
// read: an image and its label, a mask, some coordinates. Everything random about training (order, crops,
// flips) is a function of (seed, epoch, index) elsewhere, so that any rank can draw any sample.
//
// Images with one label are a kind of their own, because they can be augmented and mixed. Only data/ asks
// which kind a set is, besides commands that are about images.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

// Mean and deviation are those of a set's training pixels, scaled to [0, 1], per channel: red, green, blue;
// or three times that of grey.
struct Normalisation {
  std::array<float, 3> mean{0.4914f, 0.4822f, 0.4465f}, deviation{0.2470f, 0.2435f, 0.2616f};  // CIFAR-10's
};

// Pixels are bytes that are scaled to [0, 1] and normalised where a network reads them as float32.
struct SampleArray {
  std::string name;
  TensorSpec spec = {};  // of one sample as it is stored: u8, i32 or f32
  std::optional<Normalisation> pixels = {};
};

class ImageSet;

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::string name() const = 0;  // labels every output: "CIFAR-10", "generated (not CIFAR-10)"
  virtual int64_t size() const = 0;      // samples
  virtual std::vector<SampleArray> arrays() const = 0;
  // Returns the sample that an epoch of training has in the place of this one. A set of text has more samples
  // than an epoch: its rows may begin at any token.
  virtual int64_t drawn(int64_t index, uint64_t /*seed*/, int64_t /*epoch*/) const { return index; }
  // Copies array number `array` of sample `index` to `out`, which has its bytes. Safe from several threads.
  // Throws Error naming file and record when it can't be read any more, or has a number that does not fit.
  virtual void read(size_t array, int64_t index, std::span<std::byte> out) const = 0;
  // Returns the set where its samples are images with one label, else nullptr.
  virtual const ImageSet* images() const { return nullptr; }
  // Returns a hash of all arrays with their shapes. Where an array has more than 256 MiB, it covers a sample
  // of 256 MiB that is evenly spread; an array of single numbers is hashed whole.
  virtual uint64_t contents() const;
  // Returns a hash of the arrays of at most so many samples, evenly spread.
  uint64_t fingerprint(int64_t most_samples) const;
  // Returns the files that are read whenever a sample is asked for; a set in memory has none.
  virtual std::vector<std::string> files() const { return {}; }
  // Returns a sentence naming the file when another one has taken its name since it was opened; otherwise "".
  virtual std::string replaced() const { return ""; }
  // Returns facts in which ranks that read the same data agree, as names and values: the form of its samples.
  virtual std::vector<std::pair<std::string, std::string>> form() const;
  // Returns how many classes its labels have, or 0: it has no classes.
  virtual int classes() const { return 0; }
};

// An ImageSet has the arrays "images" and "labels".
class ImageSet : public DataSet {
 public:
  virtual Shape image_shape() const = 0;                         // C x H x W, C = 3 or 1: grey
  virtual std::span<const std::string> class_names() const = 0;  // one per class, in label order
  // Copies image `index` (C planes, row-major) to `out` (C·H·W bytes), as read() does.
  virtual void image(int64_t index, std::span<uint8_t> out) const = 0;
  virtual int label(int64_t index) const = 0;  // 0 … classes − 1
  virtual Normalisation normalisation() const { return {}; }

  std::vector<SampleArray> arrays() const final;
  void read(size_t array, int64_t index, std::span<std::byte> out) const final;
  const ImageSet* images() const final { return this; }
  std::vector<std::pair<std::string, std::string>> form() const final;
  int classes() const final { return int(class_names().size()); }
};

// Returns both numbers of every channel with all their bits, as text.
std::string describe(const Normalisation&);

struct DataSplits {
  std::shared_ptr<const DataSet> train, test;
};

struct ImageSplits {
  std::shared_ptr<const ImageSet> train, test;
  operator DataSplits() const { return {train, test}; }
};

}  // namespace antichain
