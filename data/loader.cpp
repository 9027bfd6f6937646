#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/augment_trivial.h"
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

RawImages raw_images(const ImageSet* images, int64_t samples, const LoaderOptions& options) {
  if (!images) return {};
  const Shape chw = images->image_shape();
  return {{samples, chw[0], chw[1], chw[2]},
          Normaliser(images->normalisation()).table(),
          options.train && antichain::mixes(options.augment)};
}

}  // namespace

Loader::Loader(std::shared_ptr<const DataSet> data, const LoaderOptions& options)
    : data_(std::move(data)),
      images_(data_->images()),
      options_(options),
      own_{.sampler = Sampler(data_->size(), sampler_options(options))},
      normaliser_(images_ ? images_->normalisation() : Normalisation()),
      raw_(raw_images(images_, microbatch_samples(), options)),
      next_{options.first, options.first_microbatch} {
  if (!images_ || !options_.images) return;
  ANTICHAIN_CHECK(options.ahead >= 1, "the loader thread needs room for one micro-batch");
  own_.pixels.resize(size_t(images_->image_shape().elements()));
  own_.own.resize(raw_.mixed ? own_.pixels.size() : 0);
  own_.before = own_.own;
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

void Loader::check_input(const std::shared_ptr<const DataSet>& data, const std::string& name,
                         const TensorSpec& wanted) {
  if (!data->images()) return void(ArrayInput(data, name, wanted));
  const bool labels = find_array(*data, name) == 1;
  if (wanted.shape.rank() == 4 && !labels) return;
  if (labels && wanted.shape.rank() == (wanted.dtype == DType::i32 ? 1 : 2)) return;
  throw Error(
      fmt::format("the network's input '{}' has {} for each sample, but {} has images with one label", name,
                  Shape(std::span(wanted.shape.begin() + 1, wanted.shape.end())).str(), data->name()),
      "name the arrays of an HDF5 file by --inputs and --targets");
}

void Loader::fill(std::string_view input, const BatchPosition& at, int microbatch, const Tensor& out) {
  const std::string name(input);
  if (!images_) return fill_array(name, {at, microbatch}, out);
  if (find_array(*data_, name) == 0) return fill_images(at, microbatch, out);
  fill_labels(at, microbatch, out);
}

void Loader::fill_array(const std::string& input, const MicrobatchPosition& place, const Tensor& out) {
  const auto found = arrays_.try_emplace(input, data_, input, out.spec()).first;
  std::byte* to = out.raw();
  for (int64_t n = 0; n < microbatch_samples(); ++n, to += found->second.sample_bytes()) {
    const int64_t index = index_of(own_.sampler, place, n);
    index == Sampler::padding ? found->second.pad(to) : found->second.read(index, to);
  }
}

void Loader::fill_images(const BatchPosition& position, int microbatch, const Tensor& out) {
  check(out, images_spec(), microbatch);
  ANTICHAIN_CHECK(options_.images, "this loader was made for labels only");
  const MicrobatchPosition place{position, microbatch};
  if (!take(place, out)) decode(own_, place, out);
}

void Loader::fill_labels(const BatchPosition& position, int microbatch, const Tensor& out) {
  const MicrobatchPosition place{position, microbatch};
  if (out.dtype() == DType::f32) return fill_shares(place, out);
  check(out, {{microbatch_samples()}, DType::i32}, microbatch);
  if (raw_.mixed)
    throw Error("mixed images have labels that are shares of classes, but the model takes one class a sample",
                "build the model for soft labels, or mix no images", ExitCode::usage);
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    const int64_t index = index_of(own_.sampler, place, n);
    out.data<int32_t>()[n] = index == Sampler::padding ? -1 : images_->label(index);
  }
}

void Loader::fill_shares(const MicrobatchPosition& place, const Tensor& out) {
  ANTICHAIN_CHECK(out.shape().rank() == 2, "shares are N x K");
  const int64_t classes = out.shape()[1];
  check(out, {{microbatch_samples(), classes}}, place.microbatch);
  const Mix mix = mix_of(place.position);
  std::fill_n(out.data<float>(), out.elements(), 0.0f);
  const auto add = [&](int64_t n, int64_t of, float share) {
    const int64_t index = index_of(own_.sampler, place, of);
    if (index == Sampler::padding) return;
    const int label = images_->label(index);
    if (label < 0 || label >= classes)
      throw Error(fmt::format("image {} has label {}, but the model knows classes 0 to {}", index, label,
                              classes - 1),
                  "check the data set and the number of classes");
    out.data<float>()[n * classes + label] += share;
  };
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    add(n, n, mix.own);
    if (mix.mixes()) add(n, n - 1, mix.other);
  }
}

TensorSpec Loader::images_spec() const {
  if (options_.raw) return raw_spec(raw_.shape, raw_.mixed);
  return {.shape = raw_.shape};
}

void Loader::check(const Tensor& out, const TensorSpec& spec, int microbatch) const {
  ANTICHAIN_CHECK(microbatch >= 0 && microbatch < options_.microbatches, "a micro-batch of the batch");
  ANTICHAIN_CHECK(out.spec() == spec,
                  "the loader fills tensors of shape " + spec.shape.str() + ", not " + out.shape().str());
}

Loader::MicrobatchPosition Loader::after(const MicrobatchPosition& place) const {
  const int next = place.microbatch + options_.every;
  if (next < options_.microbatches) return {place.position, next};
  return {own_.sampler.after(place.position), options_.first_microbatch};
}

int64_t Loader::index_of(Sampler& sampler, const MicrobatchPosition& place, int64_t n) const {
  const int64_t in_batch = place.microbatch * microbatch_samples() + n;
  const int64_t index = sampler.sample(place.position, (in_batch + options_.batch) % options_.batch);
  if (!options_.train || index == Sampler::padding) return index;
  return data_->drawn(index, options_.seed, place.position.epoch);
}

Augmentation Loader::draw(const MicrobatchPosition& place, int64_t index) const {
  if (!options_.train) return {};
  return draw_augmentation(options_.augment, images_->image_shape(), options_.seed, place.position.epoch,
                           index);
}

Mix Loader::mix_of(const BatchPosition& position) const {
  if (!options_.train) return {};
  return draw_mix(options_.augment, images_->image_shape(), options_.seed, position.epoch, position.batch);
}

void Loader::make_image(Workshop& workshop, const MicrobatchPosition& place, int64_t n,
                        std::span<float> out) const {
  const int64_t index = index_of(workshop.sampler, place, n);
  if (index == Sampler::padding) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  images_->image(index, workshop.pixels);
  const Augmentation rest =
      carry_out_in_bytes(draw(place, index), images_->image_shape(), workshop.pixels, workshop.room);
  normaliser_(workshop.pixels, images_->image_shape(), rest, out);
}

void Loader::decode(Workshop& workshop, const MicrobatchPosition& place, const Tensor& out) const {
  if (options_.raw) return read_raw(workshop, place, out);
  const Shape chw = images_->image_shape();
  const Mix mix = mix_of(place.position);
  if (mix.mixes()) make_image(workshop, place, -1, workshop.before);
  for (int64_t n = 0; n < microbatch_samples(); ++n) {
    const std::span<float> image(out.data<float>() + n * chw.elements(), size_t(chw.elements()));
    if (!mix.mixes()) {
      make_image(workshop, place, n, image);
      continue;
    }
    make_image(workshop, place, n, workshop.own);
    mix_images(mix, chw, workshop.own, workshop.before, image);
    std::swap(workshop.own, workshop.before);
  }
}

// The bytes of samples that pad the last batch are arbitrary.
void Loader::read_raw(Workshop& workshop, const MicrobatchPosition& place, const Tensor& out) const {
  const int64_t image_bytes = images_->image_shape().elements();
  const Mix mix = mix_of(place.position);
  DrawnImage* record = raw_records(out);
  uint8_t* pixels = raw_pixels(out, raw_.shape, raw_.mixed);
  for (int64_t n = raw_.mixed ? -1 : 0; n < microbatch_samples(); ++n, ++record, pixels += image_bytes) {
    const int64_t index = index_of(workshop.sampler, place, n);
    *record = {};
    if (index == Sampler::padding) continue;
    const std::span<uint8_t> image(pixels, size_t(image_bytes));
    images_->image(index, image);
    *record = {carry_out_in_bytes(draw(place, index), images_->image_shape(), image, workshop.room), 1, mix};
  }
}

// Waits for the thread to make `place` if that is what it makes next. Otherwise sends it to what follows
// `place`, and returns false: then the caller decodes this one itself.
bool Loader::take(const MicrobatchPosition& place, const Tensor& out) {
  std::unique_lock lock(mutex_);
  const MicrobatchPosition oldest = made_ > taken_ ? ring_[size_t(taken_) % ring_.size()].place : next_;
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
  Workshop workshop = own_;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (!failure_ && made_ - taken_ < int64_t(ring_.size())); });
    if (stop_) return;
    Slot& slot = ring_[size_t(made_) % ring_.size()];
    const MicrobatchPosition place = next_;
    const int64_t course = course_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      decode(workshop, place, slot.images);
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
