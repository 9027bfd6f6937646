// A Loader fills the inputs of micro-batches from a data set's arrays. Images are decoded and augmented by a
// thread that works ahead.
//
// The contents of a micro-batch are a pure function of (data set, options, position): the thread only changes
// when they are computed. It works in schedule order (micro-batch after micro-batch, batch after batch) into
// a bounded ring. A request out of that order is served all the same, and the thread continues from there.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "data/array_input.h"
#include "data/augment.h"
#include "data/data_set.h"
#include "data/mix.h"
#include "data/normaliser.h"
#include "data/raw_images.h"
#include "data/sampler.h"

namespace antichain {

struct LoaderOptions {
  int64_t batch = 128;                  // samples
  int microbatches = 1;                 // a batch is cut into; Error when that leaves a rest
  int first_microbatch = 0, every = 1;  // of these the thread makes this one and every so many-th after it
  uint64_t seed = 0;
  bool train = true;       // shuffled, augmented, last partial batch dropped; otherwise in file order, padded
  AugmentOptions augment;  // of training images
  bool images = true;      // false where only labels are wanted: no thread, no decoding
  bool raw = false;        // images as bytes, for a device to augment and normalise
  int ahead = 16;          // micro-batches the thread may be ahead
  BatchPosition first;     // where the thread begins
};

class Loader {
 public:
  Loader(std::shared_ptr<const DataSet>, const LoaderOptions&);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The inputs of a network that the arrays of an ImageSet fill, by their names.
  static constexpr std::string_view images_input = "images", labels_input = "labels";
  // Throws Error when no array of the set fills an input of that name and form, samples first.
  static void check_input(const std::shared_ptr<const DataSet>&, const std::string& name, const TensorSpec&);

  const Sampler& sampler() const { return own_.sampler; }
  int64_t microbatch_samples() const { return options_.batch / options_.microbatches; }

  // Returns what raw images are made of; nullptr where images are made here.
  const RawImages* raw() const { return images_ && options_.images && options_.raw ? &raw_ : nullptr; }

  // Fills the input of that name: those of an ImageSet by the functions below, others as data/array_input.h
  // has it. Throws as check_input().
  void fill(std::string_view input, const BatchPosition&, int microbatch, const Tensor& out);
  // Writes the images of one micro-batch to `out`: N x C x H x W, f32, plain; samples that pad the last batch
  // are zero. Raw ones are a tensor of raw_spec(). Rethrows what the thread threw.
  void fill_images(const BatchPosition&, int microbatch, const Tensor& out);
  // Writes the labels to `out`: N, i32, −1 for samples that pad the last batch; or the share of each class,
  // N x K, f32, zeros for samples that pad. Mixed images have shares only.
  void fill_labels(const BatchPosition&, int microbatch, const Tensor& out);

 private:
  struct MicrobatchPosition {
    BatchPosition position;
    int microbatch = 0;
    bool operator==(const MicrobatchPosition&) const = default;
  };
  struct Slot {
    MicrobatchPosition place;
    Tensor images;
  };
  MicrobatchPosition after(const MicrobatchPosition&) const;
  TensorSpec images_spec() const;
  // What a thread needs to make images.
  struct Workshop {
    Sampler sampler;
    std::vector<uint8_t> pixels, room;
    std::vector<float> own, before;  // to mix
  };
  // Returns the index of sample n of the micro-batch, or Sampler::padding; −1 is the sample before the first.
  int64_t index_of(Sampler&, const MicrobatchPosition&, int64_t n) const;
  Augmentation draw(const MicrobatchPosition&, int64_t index) const;
  Mix mix_of(const BatchPosition&) const;
  void make_image(Workshop&, const MicrobatchPosition&, int64_t n, std::span<float> out) const;
  void decode(Workshop&, const MicrobatchPosition&, const Tensor& out) const;
  void read_raw(Workshop&, const MicrobatchPosition&, const Tensor& out) const;
  void fill_shares(const MicrobatchPosition&, const Tensor& out);
  void fill_array(const std::string& input, const MicrobatchPosition&, const Tensor& out);
  void check(const Tensor& out, const TensorSpec&, int microbatch) const;
  bool take(const MicrobatchPosition&, const Tensor& out);
  void work();

  std::shared_ptr<const DataSet> data_;
  const ImageSet* images_;  // nullptr: the set has other arrays
  LoaderOptions options_;
  Workshop own_;  // of the caller's thread; the worker has its own
  Normaliser normaliser_;
  RawImages raw_;
  std::map<std::string, ArrayInput, std::less<>> arrays_;  // by the input's name, once it was asked for

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Slot> ring_;  // filled slots: ring_[taken_ % n] … ring_[(made_ − 1) % n]
  int64_t made_ = 0, taken_ = 0;
  int64_t course_ = 0;       // counts restarts: a slot made for an older course is thrown away
  MicrobatchPosition next_;  // what the thread makes next
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace antichain
