// Tests generated data sets.
#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "data/cifar.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

std::array<uint8_t, 3072> draw(int64_t index, int label) {
  std::array<uint8_t, 3072> pixels;
  draw_synthetic(1, index, label, pixels);
  return pixels;
}

TEST(Synthetic, IsReadBackWithItsLabelOnIt) {
  const TemporaryFolder folder;
  write_synthetic(folder.str(), {.train_images = 10'020, .test_images = 33});
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  EXPECT_EQ(sets.train->size(), 10'020);
  EXPECT_EQ(sets.test->size(), 33);
  EXPECT_EQ(sets.train->name(), "generated (not CIFAR-10)");
  EXPECT_EQ(sets.train->class_names()[5], "disc");
  std::map<int, int> counts;
  for (int64_t i = 0; i < sets.train->size(); ++i) ++counts[sets.train->label(i)];
  // Labels are drawn evenly: 1002 each in the mean with a standard deviation of 30; 5 deviations.
  for (int label = 0; label < 10; ++label) EXPECT_NEAR(counts[label], 1002, 150);
}

TEST(Synthetic, TheSameOptionsWriteTheSameBytes) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, uint64_t seed) {
    write_synthetic((folder.path() / name).string(), {.train_images = 20, .test_images = 5, .seed = seed});
    return read_file((folder.path() / name / "data_batch_1.bin").string());
  };
  const std::string first = write("a", 1);
  EXPECT_EQ(first.size(), 20u * 3073);
  EXPECT_EQ(first, write("b", 1));
  EXPECT_NE(first, write("c", 2));
}

TEST(Synthetic, ImagesOfOneClassDiffer) {
  EXPECT_EQ(draw(3, 5), draw(3, 5));
  EXPECT_NE(draw(3, 5), draw(4, 5));
  EXPECT_NE(draw(3, 5), draw(3, 6));
}

// Neither the mean colour nor a mean image gives the classes away: what is left to learn is shape. A
// classifier by the nearest class mean, fitted on 2,000 images, stays far below what a small network reaches.
TEST(Synthetic, TheNearestMeanDoesNotSolveIt) {
  std::array<std::array<double, 3072>, 10> means{};
  for (int label = 0; label < 10; ++label) {
    for (int n = 0; n < 200; ++n) {
      const auto pixels = draw(1000 * label + n, label);
      for (size_t p = 0; p < 3072; ++p) means[size_t(label)][p] += pixels[p] / 200.0;
    }
  }
  int right = 0;
  for (int n = 0; n < 300; ++n) {
    const auto pixels = draw(50'000 + n, n % 10);
    int best = 0;
    double best_distance = INFINITY;
    for (int label = 0; label < 10; ++label) {
      double distance = 0;
      for (size_t p = 0; p < 3072; ++p) distance += std::pow(pixels[p] - means[size_t(label)][p], 2);
      if (distance < best_distance) best = label, best_distance = distance;
    }
    right += best == n % 10;
  }
  EXPECT_LT(right, 120);  // chance is 30 of 300; 40 % would make the task too simple to mean anything
}

TEST(Synthetic, NamesAFolderThatCantBeWritten) {
  expect_error([] { write_synthetic("/proc/antichain", {.train_images = 1, .test_images = 1}); },
               {"/proc/antichain"});
}

}  // namespace
}  // namespace antichain
