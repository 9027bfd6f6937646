#include "data/hdf5_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include "data/pixel_sums.h"
#include "framework/error.h"

namespace antichain {
namespace {

constexpr int64_t most_side = 1 << 14, sampled_images = 4096;

std::optional<std::vector<std::string>> text(const ArrayReader& reader, const std::string& images,
                                             const std::string& name) {
  auto own = reader.strings(images, name);
  return own ? own : reader.strings("/", name);
}

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

}  // namespace

ArrayReader::Opened OpenHdf5::open(const std::string& path, ArrayType type) {
  ArrayReader::Opened opened = reader.open(path, type);
  for (const std::string& source : opened.sources) sources.push_back(std::make_unique<WatchedFile>(source));
  return opened;
}

void OpenHdf5::check_unchanged(int64_t record) const {
  watched.check_unchanged(record);
  for (const auto& source : sources) source->check_unchanged(record);
}

std::vector<std::string> OpenHdf5::files() const {
  std::vector<std::string> all = {watched.path()};
  for (const auto& source : sources) all.push_back(source->path());
  return all;
}

std::string OpenHdf5::replaced() const {
  const auto other = std::ranges::find_if(sources, [](const auto& source) { return source->replaced(); });
  if (!watched.replaced() && other == sources.end()) return "";
  return fmt::format("{} is another file now; training goes on with the one it was",
                     watched.replaced() ? watched.path() : (*other)->path());
}

std::string OpenHdf5::name() const {
  if (const auto given = reader.strings("/", "name")) return given->at(0);
  return std::filesystem::path(watched.path()).stem().string();
}

Hdf5Images::Hdf5Images(std::shared_ptr<OpenHdf5> file, const std::string& path)
    : file_(std::move(file)), images_(file_->open(path, ArrayType::u8)), layout_(layout()) {}

Hdf5Images::Layout Hdf5Images::layout() const {
  const ArraySpec& spec = images_.spec;
  const std::string where = fmt::format("{}: '{}'", file_->watched.path(), spec.path);
  const std::vector<int64_t>& s = spec.shape;
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  Layout layout;
  if (s.size() == 3) {
    layout = {.channels = 1, .height = s[1], .width = s[2]};
  } else if (s.size() == 4) {
    const bool first = is_channels(s[1]), last = is_channels(s[3]);
    std::string given;
    if (const auto said = text(file_->reader, spec.path, "layout")) given = said->at(0);
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

void Hdf5Images::read(int64_t index, std::span<uint8_t> out) const {
  ANTICHAIN_CHECK(int64_t(out.size()) == layout_.bytes(), "an image needs a buffer of its own size");
  ANTICHAIN_CHECK(index >= 0 && index < count(), "an image index within the data set");
  if (layout_.channels == 1 || !layout_.interleaved) return read_stored(index, out);
  thread_local std::vector<uint8_t> stored;
  stored.resize(size_t(layout_.bytes()));
  read_stored(index, stored);
  const auto plane = size_t(layout_.height * layout_.width);
  for (size_t c = 0; c < 3; ++c)
    for (size_t p = 0; p < plane; ++p) out[c * plane + p] = stored[3 * p + c];
}

void Hdf5Images::read_stored(int64_t index, std::span<uint8_t> out) const {
  if (images_.offset) return file_->watched.read(*images_.offset + index * layout_.bytes(), out, index);
  file_->check_unchanged(index);
  file_->reader.read(images_, index, std::as_writable_bytes(out));
}

Normalisation normalisation_of(const OpenHdf5& file, const Hdf5Images& train) {
  const std::string& path = file.watched.path();
  const auto mean = file.reader.numbers("/", "mean"), deviation = file.reader.numbers("/", "std");
  if (mean.has_value() != deviation.has_value())
    throw Error(fmt::format("{} has only one of the attributes mean and std", path), "give both, or none");
  if (mean) {
    const Normalisation given{three(*mean, path, "mean", false), three(*deviation, path, "std", true)};
    check_unit(*mean, *deviation, path);
    return given;
  }
  PixelSums sums(train.shape()[0]);
  std::vector<uint8_t> pixels(size_t(train.shape().elements()));
  const int64_t images = std::min(train.count(), sampled_images);
  for (int64_t i = 0; i < images; ++i) {
    train.read(i * train.count() / images, pixels);
    sums.add(pixels);
  }
  return sums.normalisation();
}

}  // namespace antichain
