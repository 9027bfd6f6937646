// The operations of TrivialAugment give torchvision's bytes: tests/golden/trivial_augment.py.
#include "data/augment_trivial.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "data/normaliser.h"
#include "framework/error.h"

namespace antichain {
namespace {

struct Picture {
  Shape chw;
  std::vector<uint8_t> bytes;
};

uint8_t hashed(uint64_t i, uint64_t factor) { return uint8_t(uint32_t(i * factor) >> 24); }

Picture noise(int64_t height, int64_t width) {
  Picture p{{3, height, width}, std::vector<uint8_t>(size_t(3 * height * width))};
  for (size_t i = 0; i < p.bytes.size(); ++i) p.bytes[i] = uint8_t(20 + hashed(i, 2654435761) * 190 / 256);
  return p;
}

Picture uneven(int64_t height, int64_t width) {
  Picture p{{3, height, width}, std::vector<uint8_t>(size_t(3 * height * width))};
  const size_t area = size_t(height * width);
  for (size_t i = 0; i < p.bytes.size(); ++i) {
    const int h = hashed(i, 2246822519);
    p.bytes[i] = i / area == 1 ? uint8_t(77) : uint8_t(h * h / 255);
  }
  return p;
}

// The CRC of zlib and PNG.
uint32_t crc32(const std::vector<uint8_t>& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

const ImageOperation& named(const std::string& name) {
  for (const ImageOperation& operation : image_operations())
    if (name == operation.name) return operation;
  ADD_FAILURE() << "no operation " << name;
  return image_operations()[0];
}

TEST(TrivialAugment, EveryOperationGivesTorchvisionsBytesAtEveryStrength) {
  const Picture pictures[] = {noise(32, 32), uneven(32, 32), noise(23, 40)};
  std::ifstream file(TRIVIAL_AUGMENT_GOLDEN);
  ASSERT_TRUE(file) << TRIVIAL_AUGMENT_GOLDEN;
  std::map<std::string, int> lines;
  std::string name, strength, crc;
  while (file >> name >> strength) {
    ++lines[name];
    for (const Picture& p : pictures) {
      ASSERT_TRUE(file >> crc);
      std::vector<uint8_t> out(p.bytes.size());
      named(name).carry_out(p.bytes, p.chw, std::stod(strength), out);
      EXPECT_EQ(crc32(out), std::stoul(crc, nullptr, 16))
          << name << " by " << strength << ", " << p.chw.str();
    }
  }
  EXPECT_EQ(lines.size(), 14u);
  EXPECT_EQ(lines["Rotate"], 62);
  EXPECT_EQ(lines["Solarize"], 31);
}

// The file lists the strengths bin by bin, the positive before the negative.
TEST(TrivialAugment, StrengthsAreThoseOfTheFile) {
  std::ifstream file(TRIVIAL_AUGMENT_GOLDEN);
  std::map<std::string, int> seen;
  std::string name, strength, rest;
  while (file >> name >> strength && std::getline(file, rest)) {
    const ImageOperation& operation = named(name);
    const int line = seen[name]++, bin = operation.either_sign ? line / 2 : line;
    const double size = operation.strength ? operation.strength(bin) : 0;
    EXPECT_EQ(std::stod(strength), operation.either_sign && line % 2 == 1 ? -size : size)
        << name << " " << bin;
  }
}

TEST(TrivialAugment, DrawsEveryOperationStrengthAndSignEvenly) {
  const int draws = 56000;
  std::array<int, 14> operations{};
  std::map<double, int> shears;
  for (int i = 0; i < draws; ++i) {
    const ImageChange change = draw_augmentation({.trivial = true}, {3, 32, 32}, 3, 1, i).change;
    ++operations[size_t(change.operation)];
    if (std::string(image_operations()[size_t(change.operation)].name) == "ShearX") ++shears[change.strength];
  }
  for (const int count : operations) EXPECT_NEAR(count, 4000, 4 * std::sqrt(4000.0));
  EXPECT_EQ(shears.size(), 61u);  // 30 of each sign, and 0
  for (const auto& [strength, count] : shears)
    EXPECT_NEAR(count, strength == 0 ? 4000 / 31 : 4000 / 62, 60) << strength;  // seven deviations of √64
}

TEST(TrivialAugment, ComesAfterTheFlipAndBeforeTheRest) {
  const Picture p = noise(32, 32);
  Augmentation drawn{.down = 3, .right = -2, .flip = true, .change = {.operation = 1, .strength = 0.5}};
  drawn.erased = {2, 3, 5, 6};
  std::vector<uint8_t> moved = p.bytes, pixels = p.bytes, sheared(pixels.size()), room;
  const Augmentation still = carry_out_in_bytes({.down = 3, .right = -2, .flip = true}, p.chw, moved, room);
  EXPECT_EQ(moved, p.bytes) << "without a change nothing is done in bytes";
  EXPECT_EQ(still.down, 3);
  const Augmentation rest = carry_out_in_bytes(drawn, p.chw, pixels, room);
  EXPECT_TRUE(rest.down == 0 && rest.right == 0 && !rest.flip && rest.change.operation == 0);
  EXPECT_EQ(rest.erased.width, 6);
  for (int64_t c = 0; c < 3; ++c)
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const int row = source_row(drawn, y, 32), column = source_column(drawn, x, 32);
        const bool inside = row != black && column != black;
        moved[size_t((c * 32 + y) * 32 + x)] =
            inside ? p.bytes[size_t((c * 32 + row) * 32 + column)] : uint8_t(0);
      }
  carry_out(drawn.change, moved, p.chw, sheared);
  EXPECT_EQ(pixels, sheared);
  std::vector<float> out(p.bytes.size());
  EXPECT_THROW(Normaliser()(p.bytes, p.chw, drawn, out), Error) << "the change would be forgotten";
}

}  // namespace
}  // namespace antichain
