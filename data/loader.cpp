#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

SamplerOptions sampler_options(const LoaderOptions& options) {
  if (options.microbatches < 1 || options.batch % options.microbatches != 0) {
    throw Error(fmt::format("a batch of {} can't be cut into {} micro-batches of equal size", options.batch,
                            options.microbatches),
                "choose --batch as a multiple of --microbatches", ExitCode::usage);
  }
  return {.batch = options.batch,
          .order = options.train ? Order::shuffled : Order::in_file_order,
          .last = options.train ? LastBatch::drop : LastBatch::pad,
          .seed = options.seed};
}

Shape images_shape(int64_t samples, const Shape& chw) { return {samples, chw[0], chw[1], chw[2]}; }

}  // namespace

Loader::Loader(std::shared_ptr<const DataSet> data, const LoaderOptions& options)
    : data_(std::move(data)),
      options_(options),
      sampler_(data_->size(), sampler_options(options)),
      normaliser_(data_->normalisation()),
      raw_{images_shape(microbatch_samples(), data_->image_shape()), normaliser_.table()},
      next_{options.first, options.first_microbatch} {
  if (!options_.images) return;
  ANTICHAIN_CHECK(options.ahead >= 1, "the loader thread needs room for one micro-batch");
  pixels_.resize(size_t(data_->image_shape().elements()));
  ring_.resize(size_t(options.ahead));
  for (Slot& slot : ring_) slot.images = Tensor::host(images_spec());
  thread_ = std::thread([this] { work(); });
}

Loader::~Loader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::fill(std::string_view input, const BatchPosition& at, int microbatch, const Tensor& out) {
  if (input == images_input) return fill_images(at, microbatch, out);
  if (input == labels_input) return fill_labels(at, microbatch, out);
  throw Error(fmt::format("the model has an input '{}' that no data set fills", input),
              fmt::format("name inputs {} or {}", images_input, labels_input));
}

void Loader::fill_images(const BatchPosition& position, int microbatch, const Tensor& out) {
  check(out, images_spec(), microbatch);
  ANTICHAIN_CHECK(options_.images, "this loader was made for labels only");
  const Place place{position, microbatch};
  if (!take(place, out)) decode(sampler_, pixels_, place, out);
}

void Loader::fill_labels(const BatchPosition& position, int microbatch, const Tensor& out) {
  check(out, {{microbatch_samples()}, DType::i32}, microbatch);
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    const int64_t index = sampler_.sample(position, microbatch * microbatch_samples() + n);
    out.data<int32_t>()[n] = index == Sampler::padding ? -1 : data_->label(index);
  }
}

TensorSpec Loader::images_spec() const {
  if (options_.raw) return raw_spec(raw_.shape);
  return {.shape = raw_.shape};
}

void Loader::check(const Tensor& out, const TensorSpec& spec, int microbatch) const {
  ANTICHAIN_CHECK(microbatch >= 0 && microbatch < options_.microbatches, "a micro-batch of the batch");
  ANTICHAIN_CHECK(out.spec() == spec,
                  "the loader fills tensors of shape " + spec.shape.str() + ", not " + out.shape().str());
}

Loader::Place Loader::after(const Place& place) const {
  const int next = place.microbatch + options_.every;
  if (next < options_.microbatches) return {place.position, next};
  return {sampler_.after(place.position), options_.first_microbatch};
}

Augmentation Loader::draw(const Place& place, int64_t index) const {
  if (!options_.train) return {};
  return draw_augmentation(options_.augment, data_->image_shape(), options_.seed, place.position.epoch,
                           index);
}

void Loader::decode(Sampler& sampler, std::vector<uint8_t>& pixels, const Place& place,
                    const Tensor& out) const {
  if (options_.raw) return read_raw(sampler, place, out);
  const Shape chw = data_->image_shape();
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    const std::span<float> image(out.data<float>() + n * chw.elements(), size_t(chw.elements()));
    const int64_t index = sampler.sample(place.position, place.microbatch * microbatch_samples() + n);
    if (index == Sampler::padding) {
      std::fill(image.begin(), image.end(), 0.0f);
      continue;
    }
    data_->image(index, pixels);
    normaliser_(pixels, chw, draw(place, index), image);
  }
}

// The bytes of samples that pad the last batch are arbitrary.
void Loader::read_raw(Sampler& sampler, const Place& place, const Tensor& out) const {
  const int64_t image_bytes = data_->image_shape().elements();
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    const int64_t index = sampler.sample(place.position, place.microbatch * microbatch_samples() + n);
    raw_records(out)[n] = {};
    if (index == Sampler::padding) continue;
    data_->image(index, {raw_pixels(out, raw_.shape) + n * image_bytes, size_t(image_bytes)});
    raw_records(out)[n] = {draw(place, index), 1};
  }
}

// Waits for the thread to make `place` if that is what it makes next. Otherwise sends it to what follows
// `place`, and returns false: then the caller decodes this one itself.
bool Loader::take(const Place& place, const Tensor& out) {
  std::unique_lock lock(mutex_);
  const Place oldest = made_ > taken_ ? ring_[size_t(taken_) % ring_.size()].place : next_;
  if (!(oldest == place)) {
    taken_ = made_;
    next_ = after(place);
    ++course_;
    changed_.notify_all();
    return false;
  }
  changed_.wait(lock, [&] { return made_ > taken_ || failure_; });
  if (made_ == taken_) std::rethrow_exception(failure_);
  std::memcpy(out.raw(), ring_[size_t(taken_) % ring_.size()].images.raw(), size_t(out.bytes()));
  ++taken_;
  changed_.notify_all();
  return true;
}

void Loader::work() {
  Sampler sampler = sampler_;
  std::vector<uint8_t> pixels(pixels_.size());
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (!failure_ && made_ - taken_ < int64_t(ring_.size())); });
    if (stop_) return;
    Slot& slot = ring_[size_t(made_) % ring_.size()];
    const Place place = next_;
    const int64_t course = course_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      decode(sampler, pixels, place, slot.images);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (course != course_) continue;  // the caller went elsewhere meanwhile
    if (failure) {
      failure_ = failure;
    } else {
      slot.place = place;
      next_ = after(place);
      ++made_;
    }
    changed_.notify_all();
  }
}

}  // namespace antichain
