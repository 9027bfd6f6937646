#include "tests/models/golden.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace antichain {
namespace {

uint64_t fnv1a(std::string_view name) {
  uint64_t key = 0xCBF29CE484222325;
  for (const char c : name) key = (key ^ uint8_t(c)) * 0x100000001B3;
  return key;
}

// In [−1, 1), 24 bits. SplitMix64: Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
// 2014.
double drawn(uint64_t key, int64_t index) {
  uint64_t z = key + uint64_t(index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return double((z ^ (z >> 31)) >> 40) * 0x1p-23 - 1;
}

}  // namespace

void draw_golden(const Tensor& plain, std::string_view full_name) {
  const Shape& shape = plain.shape();
  double scale = 0.1, offset = 0;
  if (full_name == "images") {
    scale = 1;
  } else if (shape.rank() > 1) {
    scale = std::sqrt(6 / double(shape.elements() / shape[0]));
  } else if (full_name.ends_with("weight")) {
    scale = 0.25, offset = 1;
  }
  const uint64_t key = fnv1a(full_name);
  for (int64_t i = 0; i < shape.elements(); ++i)
    plain.data<float>()[i] = float(offset + scale * drawn(key, i));
}

std::vector<GoldenLosses> read_golden_losses() {
  std::vector<GoldenLosses> all;
  std::ifstream file(fmt::format("{}/losses.txt", ANTICHAIN_GOLDEN));
  if (!file)
    throw std::runtime_error("tests/golden/losses.txt is not there: tests/golden/losses.py writes it");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    GoldenLosses g{.losses = std::vector<double>(2)};
    std::string form;
    words >> form >> g.model >> g.image >> g.aux >> g.losses[0] >> g.losses[1] >> g.gradient_norm;
    if (!words) throw std::runtime_error("tests/golden/losses.txt has a line of another form: " + line);
    g.form = form == "cifar" ? Form::cifar : Form::imagenet;
    all.push_back(g);
  }
  return all;
}

}  // namespace antichain
