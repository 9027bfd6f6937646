#include "data/array_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "data/hdf5_images.h"
#include "framework/error.h"
#include "framework/printable.h"

namespace antichain {
namespace {

DType dtype_of(ArrayType type) {
  return type == ArrayType::u8 ? DType::u8 : type == ArrayType::i64 ? DType::i32 : DType::f32;
}

// One array of one split.
struct StoredArray {
  ArrayReader::Opened opened;
  std::optional<Hdf5Images> images;  // where its bytes are pixels
};

bool looks_like_images(const ArraySpec& spec) {
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  return spec.type == ArrayType::u8 &&
         (spec.shape.size() == 3 ||
          (spec.shape.size() == 4 && (is_channels(spec.shape[1]) || is_channels(spec.shape[3]))));
}

class ArraySet : public DataSet {
 public:
  ArraySet(std::shared_ptr<OpenHdf5> file, const std::string& split,
           const std::vector<AssignedArray>& assigned)
      : file_(std::move(file)), name_(printable(file_->name())) {
    std::set<std::string> computed_with;
    for (const AssignedArray& a : assigned)
      if (a.computed_with) computed_with.insert(a.array);
    for (const auto& [input, array, unused] : assigned)
      add(input, split + "/" + array, computed_with.contains(array));
  }

  std::string name() const override { return name_; }
  int64_t size() const override { return size_; }
  std::vector<SampleArray> arrays() const override { return arrays_; }
  std::vector<std::string> files() const override { return file_->files(); }
  std::string replaced() const override { return file_->replaced(); }

  void read(size_t array, int64_t index, std::span<std::byte> out) const override {
    const auto& [opened, images] = stored_.at(array);
    if (images) return images->read(index, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
    if (opened.spec.type == ArrayType::i64) return read_integers(opened, index, out);
    if (opened.offset && opened.spec.type == ArrayType::u8)
      return file_->watched.read(*opened.offset + index * opened.spec.row_bytes(),
                                 {reinterpret_cast<uint8_t*>(out.data()), out.size()}, index);
    file_->check_unchanged(index);
    file_->reader.read(opened, index, out);
  }

  // Takes the normalisation of the training images of the same arrays.
  void normalise_as(const ArraySet& train) {
    for (size_t a = 0; a < arrays_.size(); ++a)
      if (stored_[a].images) arrays_[a].pixels = normalisation_of(*file_, *train.stored_[a].images);
  }

 private:
  void add(const std::string& input, const std::string& path, bool computed_with) {
    StoredArray stored{file_->open_any(path), {}};
    const std::vector<int64_t>& shape = stored.opened.spec.shape;
    if (size_ != 0 && shape[0] != size_)
      throw Error(fmt::format("{}: '{}' has {} samples, but the arrays before it {}", file_->watched.path(),
                              path, shape[0], size_),
                  "every array has one row for each sample");
    size_ = shape[0];
    if (size_ == 0) throw Error(fmt::format("{}: '{}' has no samples", file_->watched.path(), path));
    if (shape.size() > size_t(Shape::max_rank))
      throw Error(fmt::format("{}: '{}' has {} axes", file_->watched.path(), path, shape.size()),
                  fmt::format("{} are the most, the samples' among them", int(Shape::max_rank)));
    SampleArray array{input, {Shape(std::span(shape).subspan(1)), dtype_of(stored.opened.spec.type)}};
    if (computed_with && looks_like_images(stored.opened.spec)) {
      stored.images.emplace(file_, path);
      array.spec.shape = stored.images->shape();
    }
    arrays_.push_back(std::move(array));
    stored_.push_back(std::move(stored));
  }

  void read_integers(const ArrayReader::Opened& opened, int64_t index, std::span<std::byte> out) const {
    thread_local std::vector<int64_t> wide;
    wide.resize(out.size() / sizeof(int32_t));
    file_->check_unchanged(index);
    file_->reader.read(opened, index, std::as_writable_bytes(std::span(wide)));
    for (size_t i = 0; i < wide.size(); ++i) {
      if (wide[i] != int64_t(int32_t(wide[i])))
        throw Error(fmt::format("{}: record {} of '{}' has the number {}", file_->watched.path(), index,
                                opened.spec.path, wide[i]),
                    "integers have 32 bits here");
      reinterpret_cast<int32_t*>(out.data())[i] = int32_t(wide[i]);
    }
  }

  std::shared_ptr<OpenHdf5> file_;
  std::string name_;
  int64_t size_ = 0;
  std::vector<SampleArray> arrays_;
  std::vector<StoredArray> stored_;
};

}  // namespace

DataSplits read_array_set(const std::string& path, const std::vector<AssignedArray>& assigned) {
  const auto file = std::make_shared<OpenHdf5>(path);
  for (const char* split : {"train", "test"})
    for (const AssignedArray& a : assigned)
      if (!file->reader.has(fmt::format("{}/{}", split, a.array)))
        throw Error(fmt::format("{} has no dataset '/{}/{}'", path, split, a.array),
                    "every array has a part for training and one for tests");
  const auto train = std::make_shared<ArraySet>(file, "train", assigned),
             test = std::make_shared<ArraySet>(file, "test", assigned);
  const std::vector<SampleArray> of_train = train->arrays(), of_test = test->arrays();
  for (size_t a = 0; a < of_train.size(); ++a)
    if (of_train[a].spec != of_test[a].spec)
      throw Error(
          fmt::format("{}: '{}' has {} of {} for training, but {} of {} for tests", path, assigned[a].array,
                      name_of(of_train[a].spec.dtype), of_train[a].spec.shape.str(),
                      name_of(of_test[a].spec.dtype), of_test[a].spec.shape.str()),
          "both parts have one form");
  test->normalise_as(*train), train->normalise_as(*train);
  return {train, test};
}

}  // namespace antichain
