#include "data/hdf5_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "data/pixel_sums.h"
#include "data/watched_file.h"
#include "framework/error.h"
#include "framework/files/hdf5_arrays.h"
#include "framework/printable.h"

namespace antichain {
namespace {

constexpr int64_t most_classes = 1'000'000, most_side = 1 << 14, sampled_images = 4096;

// Both splits share an OpenFile.
struct OpenFile {
  explicit OpenFile(const std::string& file) : watched(file), reader(file) {}
  ArrayReader::Opened open(const std::string& path, ArrayType type) {
    ArrayReader::Opened opened = reader.open(path, type);
    for (const std::string& source : opened.sources) sources.push_back(std::make_unique<WatchedFile>(source));
    return opened;
  }
  void check_unchanged(int64_t record) const {
    watched.check_unchanged(record);
    for (const auto& source : sources) source->check_unchanged(record);
  }
  // Returns the name of a file that is another one now, or "".
  std::string replaced() const {
    if (watched.replaced()) return watched.path();
    const auto other = std::ranges::find_if(sources, [](const auto& source) { return source->replaced(); });
    return other == sources.end() ? "" : (*other)->path();
  }

  WatchedFile watched;  // first: a change while HDF5 opens it is seen
  ArrayReader reader;
  std::vector<std::unique_ptr<WatchedFile>> sources;  // of virtual datasets
};

struct Layout {  // of one image in the file
  int64_t channels = 3, height = 0, width = 0;
  bool interleaved = false;  // H x W x C
  int64_t bytes() const { return channels * height * width; }
};

std::optional<std::vector<std::string>> text(const ArrayReader& reader, const std::string& images,
                                             const std::string& name) {
  auto own = reader.strings(images, name);
  return own ? own : reader.strings("/", name);
}

Layout layout_of(const OpenFile& file, const ArraySpec& spec) {
  const std::string where = fmt::format("{}: '{}'", file.watched.path(), spec.path);
  const std::vector<int64_t>& s = spec.shape;
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  Layout layout;
  if (s.size() == 3) {
    layout = {.channels = 1, .height = s[1], .width = s[2]};
  } else if (s.size() == 4) {
    const bool first = is_channels(s[1]), last = is_channels(s[3]);
    std::string given;
    if (const auto said = text(file.reader, spec.path, "layout")) given = said->at(0);
    for (char& c : given) c = char(std::toupper(static_cast<unsigned char>(c)));
    if (!given.empty() && given != "NCHW" && given != "NHWC")
      throw Error(fmt::format("{} has the layout '{}'", where, given), "layout is NCHW or NHWC");
    if (given.empty() && first && last)
      throw Error(where + " could be N x C x H x W or N x H x W x C",
                  "give it the attribute layout, \"NCHW\" or \"NHWC\"");
    layout.interleaved = given.empty() ? last : given == "NHWC";
    const int64_t c = layout.interleaved ? s[3] : s[1];
    if (!is_channels(c))
      throw Error(fmt::format("{} is {} x {} x {} x {}: no axis is of 3 channels or 1", where, s[0], s[1],
                              s[2], s[3]),
                  "store colour images (red, green, blue) or grey ones");
    layout.channels = c;
    layout.height = s[layout.interleaved ? 1 : 2], layout.width = s[layout.interleaved ? 2 : 3];
  } else {
    throw Error(fmt::format("{} has {} axes", where, s.size()), "images are N x C x H x W or N x H x W x C");
  }
  if (layout.height < 1 || layout.width < 1 || layout.height > most_side || layout.width > most_side)
    throw Error(fmt::format("{} has images of {} x {} pixels", where, layout.height, layout.width),
                fmt::format("a side has 1 to {} pixels", most_side));
  if (s[0] == 0) throw Error(where + " has no images", "a split has at least one");
  return layout;
}

std::vector<int> read_labels(OpenFile& file, const std::string& split, int64_t images) {
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

class Hdf5Set : public DataSet {
 public:
  Hdf5Set(std::shared_ptr<OpenFile> file, const std::string& split)
      : file_(std::move(file)),
        images_(file_->open(split + "/images", ArrayType::u8)),
        layout_(layout_of(*file_, images_.spec)),
        labels_(read_labels(*file_, split, images_.spec.shape[0])) {}

  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(labels_.size()); }
  Shape image_shape() const override { return {layout_.channels, layout_.height, layout_.width}; }
  std::span<const std::string> class_names() const override { return class_names_; }
  int label(int64_t index) const override { return labels_.at(size_t(index)); }
  Normalisation normalisation() const override { return normalisation_; }
  std::vector<std::string> files() const override {
    std::vector<std::string> all = {file_->watched.path()};
    for (const auto& source : file_->sources) all.push_back(source->path());
    return all;
  }
  std::string replaced() const override {
    const std::string other = file_->replaced();
    if (other.empty()) return "";
    return fmt::format("{} is another file now; training goes on with the one it was", other);
  }

  void image(int64_t index, std::span<uint8_t> out) const override {
    ANTICHAIN_CHECK(int64_t(out.size()) == image_shape().elements(),
                    "an image needs a buffer of its own size");
    ANTICHAIN_CHECK(index >= 0 && index < size(), "an image index within the data set");
    if (layout_.channels == 1 || !layout_.interleaved) return read(index, out);
    thread_local std::vector<uint8_t> stored;
    stored.resize(size_t(layout_.bytes()));
    read(index, stored);
    const auto plane = size_t(layout_.height * layout_.width);
    for (size_t c = 0; c < 3; ++c)
      for (size_t p = 0; p < plane; ++p) out[c * plane + p] = stored[3 * p + c];
  }

  int64_t largest_label() const { return *std::ranges::max_element(labels_); }
  void check_labels(int64_t classes) const {
    const auto wrong = std::ranges::find_if(labels_, [&](int label) { return label >= classes; });
    if (wrong == labels_.end()) return;
    throw Error(
        fmt::format("{}: record {} of '{}' has label {}, but there are {} class names", file_->watched.path(),
                    wrong - labels_.begin(), images_.spec.path, *wrong, classes),
        "labels count from 0");
  }
  void describe(std::string name, std::vector<std::string> class_names, const Normalisation& normalisation) {
    name_ = std::move(name), class_names_ = std::move(class_names), normalisation_ = normalisation;
  }

 private:
  void read(int64_t index, std::span<uint8_t> out) const {
    if (images_.offset) return file_->watched.read(*images_.offset + index * layout_.bytes(), out, index);
    file_->check_unchanged(index);
    file_->reader.read(images_, index, std::as_writable_bytes(out));
  }

  std::shared_ptr<OpenFile> file_;
  ArrayReader::Opened images_;
  Layout layout_;
  std::vector<int> labels_;
  std::string name_;
  std::vector<std::string> class_names_;
  Normalisation normalisation_;
};

std::array<float, 3> three(const std::vector<double>& values, const std::string& file,
                           const std::string& name, bool positive) {
  const bool right = values.size() == 1 || values.size() == 3;
  if (!right || std::ranges::any_of(
                    values, [&](double v) { return !std::isfinite(v) || v < 0 || (positive && v == 0); }))
    throw Error(fmt::format("{}: the attribute '{}' is not {}1 or 3 {} numbers", file, name,
                            right ? "of " : "", positive ? "positive" : "non-negative"),
                "mean and std are of pixels scaled to [0, 1], one for each channel");
  const auto at = [&](size_t c) { return float(values[values.size() == 1 ? 0 : c]); };
  return {at(0), at(1), at(2)};
}

// Neither mean nor deviation of numbers in [0, 1] is above 1: such attributes are of pixels of 0 to 255. A
// deviation below the step from one number to the next was divided by 255 twice.
void check_unit(const std::vector<double>& mean, const std::vector<double>& deviation,
                const std::string& file) {
  if (std::ranges::min(deviation) < 0.99 / 255)
    throw Error(fmt::format("{}: the attribute std is {:g}, but pixels scaled to [0, 1] differ by 1/255 at "
                            "least",
                            file, fmt::join(deviation, " ")),
                "divide by 255 once, or leave mean and std out, and they are computed");
  if (std::ranges::max(mean) <= 1 && std::ranges::max(deviation) <= 1) return;
  const auto scaled = [](std::vector<double> values) {
    for (double& value : values) value /= 255;
    return fmt::format("{:.4g}", fmt::join(values, " "));
  };
  throw Error(fmt::format("{}: the attributes mean {:g} and std {:g} are not of pixels scaled to [0, 1]",
                          file, fmt::join(mean, " "), fmt::join(deviation, " ")),
              fmt::format("if they are of pixels of 0 to 255, write mean {} and std {}", scaled(mean),
                          scaled(deviation)));
}

Normalisation normalisation_of(const OpenFile& file, const DataSet& train) {
  const std::string& path = file.watched.path();
  const auto mean = file.reader.numbers("/", "mean"), deviation = file.reader.numbers("/", "std");
  if (mean.has_value() != deviation.has_value())
    throw Error(fmt::format("{} has only one of the attributes mean and std", path), "give both, or none");
  if (mean) {
    const Normalisation given{three(*mean, path, "mean", false), three(*deviation, path, "std", true)};
    check_unit(*mean, *deviation, path);
    return given;
  }
  PixelSums sums(train.image_shape()[0]);
  std::vector<uint8_t> pixels(size_t(train.image_shape().elements()));
  const int64_t images = std::min(train.size(), sampled_images);
  for (int64_t i = 0; i < images; ++i) {
    train.image(i * train.size() / images, pixels);
    sums.add(pixels);
  }
  return sums.normalisation();
}

std::string name_of(const OpenFile& file) {
  if (const auto given = file.reader.strings("/", "name")) return given->at(0);
  return std::filesystem::path(file.watched.path()).stem().string();
}

}  // namespace

DataSplits read_hdf5_set(const std::string& path) {
  const auto file = std::make_shared<OpenFile>(path);
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
  const Normalisation normalisation = normalisation_of(*file, *train);
  for (const auto& split : {train, test}) split->describe(printable(name_of(*file)), names, normalisation);
  return {.train = train, .test = test};
}

}  // namespace antichain
