#include "data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "data/cifar.h"
#include "framework/error.h"
#include "framework/random.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using Format = PublishedSet;

constexpr int classes = 10;  // as many as CIFAR-10 has

// A Point says where a pixel lies within the figure: centred coordinates in units of its size, and a fixed
// period for textures.
struct Point {
  float x, y;          // relative to the figure's centre, 1 = its half-size
  float u, v, period;  // pixels from the texture's origin, and the pixels of one repetition
};

bool striped(float position, float period) {
  return position / period - std::floor(position / period) < 0.5f;
}
float radius(const Point& p) { return std::sqrt(p.x * p.x + p.y * p.y); }
float square_radius(const Point& p) { return std::max(std::fabs(p.x), std::fabs(p.y)); }

// These are the ten classes. Each stays the same class after a horizontal flip, so that flipping is a fair
// augmentation.
struct ClassFigure {
  const char* name;
  bool (*inside)(const Point&);
};
constexpr std::array<ClassFigure, classes> figures{{
    {"horizontal stripes", [](const Point& p) { return striped(p.v, p.period); }},
    {"vertical stripes", [](const Point& p) { return striped(p.u, p.period); }},
    {"diagonal stripes", [](const Point& p) { return striped((p.u + p.v) * 0.7071f, p.period); }},
    {"checkerboard", [](const Point& p) { return striped(p.u, p.period) != striped(p.v, p.period); }},
    {"dots", [](const Point& p) { return striped(p.u, p.period) && striped(p.v, p.period); }},
    {"disc", [](const Point& p) { return radius(p) < 1; }},
    {"ring", [](const Point& p) { return radius(p) < 1 && radius(p) > 0.6f; }},
    {"frame", [](const Point& p) { return square_radius(p) < 0.9f && square_radius(p) > 0.55f; }},
    {"cross",
     [](const Point& p) { return square_radius(p) < 1 && std::min(std::fabs(p.x), std::fabs(p.y)) < 0.25f; }},
    {"triangle",
     [](const Point& p) { return p.y < 0.8f && p.y > -0.9f && std::fabs(p.x) < (p.y + 0.9f) * 0.58f; }},
}};

struct Colours {
  // The colours are per channel; the background shades along the diagonal by `slope`.
  std::array<float, 3> back, slope, front;
};

// Draws a foreground that differs from the background by 50 to 110 levels in every channel, up or down at
// random: a colour does not tell the class.
Colours draw_colours(const Philox& random) {
  Colours colours;
  for (int c = 0; c < 3; ++c) {
    const auto w = random.words(uint64_t(c), 1);
    const float contrast = 50 + 60 * Philox::uniform(w[1]);
    colours.back[c] = 60 + 136 * Philox::uniform(w[0]);
    colours.front[c] = colours.back[c] + ((w[2] & 1) != 0 ? contrast : -contrast);
    colours.slope[c] = 60 * (Philox::uniform(w[3]) - 0.5f);
  }
  return colours;
}

// Returns the sum of four uniform numbers, with standard deviation 1: noise need not be exactly normal.
float noise(const std::array<uint32_t, 4>& w) {
  const float sum =
      Philox::uniform(w[0]) + Philox::uniform(w[1]) + Philox::uniform(w[2]) + Philox::uniform(w[3]);
  return (sum - 2) * 1.7320508f;
}

void write_split(const fs::path& folder, const std::string& file, int64_t first, int64_t images,
                 uint64_t seed) {
  std::ofstream out(folder / file, std::ios::binary | std::ios::trunc);
  std::vector<uint8_t> record(cifar10().record_bytes());
  for (int64_t index = first; index < first + images; ++index) {
    record[0] = uint8_t(Philox(mix(seed, uint64_t(index))).words(0)[0] % classes);
    draw_synthetic(seed, index, record[0], std::span(record).subspan(1));
    out.write(reinterpret_cast<const char*>(record.data()), std::streamsize(record.size()));
  }
  out.flush();
  if (!out) {
    throw Error("can't write " + (folder / file).string(), "is the disk full, or the folder read-only?");
  }
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text << std::flush;
  if (!out) {
    throw Error("can't write " + file.string(), "is the disk full, or the folder read-only?");
  }
}

struct Split {
  std::string file;
  int64_t first, images;
};

std::vector<Split> splits(const SyntheticOptions& options) {
  std::vector<Split> all;
  const int64_t per_file = cifar10().train_images / int64_t(cifar10().train_files.size());
  int64_t first = 0;
  for (const std::string& file : cifar10().train_files) {
    const int64_t images = std::min(options.train_images - first, per_file);
    if (images > 0) all.push_back({file, first, images});
    first += per_file;
  }
  all.push_back({cifar10().test_file, cifar10().train_images, options.test_images});
  return all;
}

}  // namespace

bool is_whole_synthetic(const std::string& folder, const SyntheticOptions& options) {
  std::error_code failed;
  const fs::path path(folder);
  for (const std::string_view file : {generated_marker, cifar10().names_file})
    if (!fs::is_regular_file(path / file, failed)) return false;
  return std::ranges::all_of(splits(options), [&](const Split& split) {
    return fs::is_regular_file(path / split.file, failed) &&
           fs::file_size(path / split.file, failed) == uintmax_t(split.images * cifar10().record_bytes());
  });
}

void draw_synthetic(uint64_t seed, int64_t index, int label, std::span<uint8_t> pixels) {
  ANTICHAIN_CHECK(int64_t(pixels.size()) == Format::pixel_bytes, "a generated image is 3 x 32 x 32 bytes");
  const Philox random(mix(seed, uint64_t(index)));
  const auto place = random.words(0, 2), texture = random.words(1, 2);
  const float size = 7 + 6 * Philox::uniform(place[0]);
  const float centre_x = 16 + (32 - 2 * size) * (Philox::uniform(place[1]) - 0.5f);
  const float centre_y = 16 + (32 - 2 * size) * (Philox::uniform(place[2]) - 0.5f);
  const float period = 4 + 6 * Philox::uniform(texture[0]);
  const float offset_u = period * Philox::uniform(texture[1]),
              offset_v = period * Philox::uniform(texture[2]);
  const Colours colours = draw_colours(random);
  const float noise_levels = 8 + 20 * Philox::uniform(texture[3]);
  for (int64_t y = 0; y < Format::side; ++y) {
    for (int64_t x = 0; x < Format::side; ++x) {
      const Point point{.x = (float(x) + 0.5f - centre_x) / size,
                        .y = (float(y) + 0.5f - centre_y) / size,
                        .u = float(x) + offset_u,
                        .v = float(y) + offset_v,
                        .period = period};
      const bool inside = figures[size_t(label)].inside(point);
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t at = (c * Format::side + y) * Format::side + x;
        const float shade = colours.slope[c] * float(x + y - 31) / 31;
        const float level = (inside ? colours.front[c] : colours.back[c] + shade) +
                            noise_levels * noise(random.words(uint64_t(at), 3));
        pixels[size_t(at)] = uint8_t(std::lround(std::clamp(level, 0.0f, 255.0f)));
      }
    }
  }
}

void write_synthetic(const std::string& folder, const SyntheticOptions& options) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw Error("can't make the folder " + folder + " (" + failed.message() + ")",
                "choose another data folder");
  }
  // The marker is written first: a folder of generated images always has it.
  write_text(
      fs::path(folder) / generated_marker,
      fmt::format("These images were generated by antichain (seed {}, {} + {} images) in CIFAR-10's file\n"
                  "layout. They are not CIFAR-10.\n",
                  options.seed, options.train_images, options.test_images));
  std::string names;
  for (const ClassFigure& figure : figures) names += std::string(figure.name) + "\n";
  write_text(fs::path(folder) / cifar10().names_file, names);
  for (const Split& split : splits(options))
    write_split(folder, split.file, split.first, split.images, options.seed);
}

}  // namespace antichain
