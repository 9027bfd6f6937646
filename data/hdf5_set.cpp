#include "data/hdf5_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/hdf5_images.h"
#include "framework/error.h"
#include "framework/printable.h"

namespace antichain {
namespace {

constexpr int64_t most_classes = 1'000'000;

std::vector<int> read_labels(OpenHdf5& file, const std::string& split, int64_t images) {
  const ArrayReader::Opened opened = file.open(split + "/labels", ArrayType::i64);
  const std::vector<int64_t>& shape = opened.spec.shape;
  if (shape[0] != images || opened.spec.row_bytes() != 8)
    throw Error(fmt::format("{}: '{}' has {} labels for {} images", file.watched.path(), opened.spec.path,
                            shape[0] * opened.spec.row_bytes() / 8, images),
                "every image has one label");
  std::vector<int64_t> values(static_cast<size_t>(images));
  file.reader.read(opened, 0, std::as_writable_bytes(std::span(values)));
  std::vector<int> labels;
  for (int64_t i = 0; i < images; ++i) {
    if (values[size_t(i)] < 0 || values[size_t(i)] >= most_classes)
      throw Error(fmt::format("{}: record {} of '{}' is {}", file.watched.path(), i, opened.spec.path,
                              values[size_t(i)]),
                  "labels count from 0");
    labels.push_back(int(values[size_t(i)]));
  }
  return labels;
}

class Hdf5Set : public ImageSet {
 public:
  Hdf5Set(std::shared_ptr<OpenHdf5> file, const std::string& split)
      : file_(std::move(file)),
        images_(file_, split + "/images"),
        labels_(read_labels(*file_, split, images_.count())) {}

  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(labels_.size()); }
  Shape image_shape() const override { return images_.shape(); }
  std::span<const std::string> class_names() const override { return class_names_; }
  int label(int64_t index) const override { return labels_.at(size_t(index)); }
  Normalisation normalisation() const override { return normalisation_; }
  std::vector<std::string> files() const override { return file_->files(); }
  std::string replaced() const override { return file_->replaced(); }
  void image(int64_t index, std::span<uint8_t> out) const override { images_.read(index, out); }

  int64_t largest_label() const { return *std::ranges::max_element(labels_); }
  void check_labels(int64_t classes) const {
    const auto wrong = std::ranges::find_if(labels_, [&](int label) { return label >= classes; });
    if (wrong == labels_.end()) return;
    throw Error(fmt::format("{}: record {} of '{}' has label {}, but there are {} class names",
                            file_->watched.path(), wrong - labels_.begin(), images_.path(), *wrong, classes),
                "labels count from 0");
  }
  Normalisation own_normalisation() const { return normalisation_of(*file_, images_); }
  void describe(std::string name, std::vector<std::string> class_names, const Normalisation& normalisation) {
    name_ = std::move(name), class_names_ = std::move(class_names), normalisation_ = normalisation;
  }

 private:
  std::shared_ptr<OpenHdf5> file_;
  Hdf5Images images_;
  std::vector<int> labels_;
  std::string name_;
  std::vector<std::string> class_names_;
  Normalisation normalisation_;
};

}  // namespace

ImageSplits read_hdf5_set(const std::string& path) {
  const auto file = std::make_shared<OpenHdf5>(path);
  for (const char* part : {"train/images", "train/labels", "test/images", "test/labels"}) {
    if (!file->reader.has(part))
      throw Error(fmt::format("{} has no dataset '/{}'", path, part),
                  "a data set has /train/images, /train/labels, /test/images and /test/labels");
  }
  const auto train = std::make_shared<Hdf5Set>(file, "train"), test = std::make_shared<Hdf5Set>(file, "test");
  if (train->image_shape() != test->image_shape())
    throw Error(fmt::format("{}: images for training are {}, those for tests {}", path,
                            train->image_shape().str(), test->image_shape().str()),
                "all images have one size");
  std::vector<std::string> names;
  if (const auto given = file->reader.strings("/", "class_names")) {
    for (const std::string& name : *given) names.push_back(printable(name));
  } else {
    const int64_t classes = std::max(train->largest_label(), test->largest_label()) + 1;
    for (int64_t label = 0; label < classes; ++label) names.push_back(fmt::format("class {}", label));
  }
  train->check_labels(int64_t(names.size())), test->check_labels(int64_t(names.size()));
  const Normalisation normalisation = train->own_normalisation();
  for (const auto& split : {train, test}) split->describe(printable(file->name()), names, normalisation);
  return {.train = train, .test = test};
}

}  // namespace antichain
