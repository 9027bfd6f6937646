// Tests the loader and the thread that loads ahead.
#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "tests/data/memory_set.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

Tensor images(int64_t samples) { return Tensor::host({.shape = {samples, 3, 32, 32}}); }
Tensor labels(int64_t samples) { return Tensor::host({.shape = {samples}, .dtype = DType::i32}); }

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

// Returns what a micro-batch must hold, computed without the loader.
std::vector<float> expected_images(const ImageSet& set, const LoaderOptions& options, BatchPosition at,
                                   int microbatch) {
  const int64_t samples = options.batch / options.microbatches;
  const std::vector<int64_t> order = permutation(set.size(), options.seed, at.epoch);
  std::vector<float> result;
  for (int64_t n = 0; n < samples; ++n) {
    const int64_t index = order[size_t(at.batch * options.batch + microbatch * samples + n)];
    std::vector<uint8_t> pixels(3072);
    std::vector<float> image(3072);
    set.image(index, pixels);
    Normaliser()(pixels, {3, 32, 32},
                 draw_augmentation(options.augment, {3, 32, 32}, options.seed, at.epoch, index), image);
    result.insert(result.end(), image.begin(), image.end());
  }
  return result;
}

TEST(Loader, DeliversEveryMicrobatchOfTwoEpochsInOrder) {
  const auto set = std::make_shared<MemorySet>(26);
  const LoaderOptions options{.batch = 8, .microbatches = 4, .seed = 3, .ahead = 3};
  Loader loader(set, options);
  const Tensor x = images(2), y = labels(2);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t batch = 0; batch < 3; ++batch) {
      for (int m = 0; m < 4; ++m) {
        loader.fill_images({epoch, batch}, m, x);
        loader.fill_labels({epoch, batch}, m, y);
        EXPECT_EQ(values(x), expected_images(*set, options, {epoch, batch}, m));
        const std::vector<int64_t> order = permutation(26, 3, epoch);
        for (int64_t n = 0; n < 2; ++n) {
          EXPECT_EQ(y.data<int32_t>()[n], order[size_t(batch * 8 + m * 2 + n)] % 10);
        }
      }
    }
  }
}

TEST(Loader, ServesAnyOrderWithTheSameBits) {
  const auto set = std::make_shared<MemorySet>(40);
  const LoaderOptions options{.batch = 8, .microbatches = 2, .seed = 5, .ahead = 2};
  Loader loader(set, options);
  const Tensor x = images(4);
  const std::pair<BatchPosition, int> places[] = {{{2, 1}, 1}, {{2, 2}, 0}, {{0, 0}, 1}, {{0, 0}, 0},
                                                  {{0, 0}, 1}, {{0, 0}, 1}, {{1, 4}, 1}, {{2, 0}, 0}};
  for (const auto& [position, m] : places) {
    loader.fill_images(position, m, x);
    EXPECT_EQ(values(x), expected_images(*set, options, position, m))
        << position.epoch << " " << position.batch;
  }
}

TEST(Loader, TheThreadStaysAheadAndNoFurther) {
  const auto set = std::make_shared<MemorySet>(1000);
  Loader loader(set, {.batch = 10, .microbatches = 5, .ahead = 3});
  const auto settled = [&](int count) {  // the thread decodes 2 images per micro-batch
    for (int i = 0; i < 500 && set->decoded < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return set->decoded.load();
  };
  EXPECT_EQ(settled(6), 6);
  loader.fill_images({0, 0}, 0, images(2));
  EXPECT_EQ(settled(8), 8);
}

TEST(Loader, LabelsAloneDecodeNothing) {
  const auto set = std::make_shared<MemorySet>(100);
  Loader loader(set, {.batch = 10, .microbatches = 1, .seed = 2, .images = false});
  const Tensor y = labels(10);
  loader.fill_labels({0, 3}, 0, y);
  EXPECT_EQ(y.data<int32_t>()[4], permutation(100, 2, 0)[34] % 10);
  EXPECT_EQ(set->decoded, 0);
}

TEST(Loader, FillsInputsByNameAndRefusesOthers) {
  Loader loader(std::make_shared<MemorySet>(100), {.batch = 10, .seed = 2});
  const Tensor x = images(10), named = images(10), y = labels(10);
  loader.fill_images({0, 3}, 0, x);
  loader.fill(Loader::images_input, {0, 3}, 0, named);
  EXPECT_EQ(std::memcmp(x.raw(), named.raw(), size_t(x.bytes())), 0);
  loader.fill(Loader::labels_input, {0, 3}, 0, y);
  EXPECT_EQ(y.data<int32_t>()[4], permutation(100, 2, 0)[34] % 10);
  EXPECT_THROW(loader.fill("tokens", {0, 3}, 0, y), Error);
}

TEST(Loader, EvaluationPadsAnUnevenEnd) {
  const auto set = std::make_shared<MemorySet>(11);
  Loader loader(set, {.batch = 8, .microbatches = 4, .train = false});
  EXPECT_EQ(loader.sampler().batches(), 2);
  const Tensor x = images(2), y = labels(2);
  std::memset(x.raw(), 0xff, size_t(x.bytes()));
  loader.fill_images({0, 1}, 1, x);  // samples 10 and none
  loader.fill_labels({0, 1}, 1, y);
  EXPECT_EQ(y.data<int32_t>()[0], 0);
  EXPECT_EQ(y.data<int32_t>()[1], -1);
  EXPECT_FLOAT_EQ(x.data<float>()[0], (10 / 255.0f - 0.4914f) / 0.2470f);
  for (int64_t i = 3072; i < 2 * 3072; ++i) ASSERT_EQ(x.data<float>()[i], 0);
  loader.fill_images({0, 1}, 3, x);  // nothing but padding
  loader.fill_labels({0, 1}, 3, y);
  EXPECT_EQ(y.data<int32_t>()[0], -1);
  for (int64_t i = 0; i < 2 * 3072; ++i) ASSERT_EQ(x.data<float>()[i], 0);
}

TEST(Loader, AFailureInTheThreadReachesTheConsumer) {
  const auto set = std::make_shared<MemorySet>(12, 6);
  Loader loader(set, {.batch = 4, .microbatches = 2, .train = false, .ahead = 8});
  const Tensor x = images(2);
  loader.fill_images({0, 0}, 0, x);
  loader.fill_images({0, 0}, 1, x);
  loader.fill_images({0, 1}, 0, x);  // samples 4 and 5, made before the failure
  expect_error([&] { loader.fill_images({0, 1}, 1, x); }, {"image 6 is broken"});
}

TEST(Loader, StopsAtOnceWhateverTheThreadDoes) {
  for (int i = 0; i < 20; ++i) Loader loader(std::make_shared<MemorySet>(5000), {.batch = 500, .ahead = 4});
}

// The rule of a mixed batch, carried out on the whole batch's unmixed images.
TEST(Loader, MixesEachSampleWithTheOneBeforeWhateverTheMicroBatches) {
  const auto set = std::make_shared<MemorySet>(50);
  LoaderOptions plain{.batch = 12, .seed = 4}, mixing = plain;
  mixing.augment.mixup = mixing.augment.cutmix = 1;
  Loader unmixed(set, plain);
  int pasted = 0, blends = 0;
  for (const int microbatches : {1, 3, 12}) {
    mixing.microbatches = microbatches;
    const int64_t samples = 12 / microbatches;
    Loader loader(set, mixing);
    const Tensor whole = images(12), classes = labels(12), x = images(samples);
    const Tensor shares = Tensor::host({.shape = {samples, 10}});
    for (BatchPosition at; at.epoch < 3; at = loader.sampler().after(at)) {
      unmixed.fill_images(at, 0, whole);
      unmixed.fill_labels(at, 0, classes);
      const Mix mix = draw_mix(mixing.augment, {3, 32, 32}, 4, at.epoch, at.batch);
      (mix.pasted.empty() ? blends : pasted) += 1;
      for (int m = 0; m < microbatches; ++m) {
        loader.fill_images(at, m, x);
        loader.fill_labels(at, m, shares);
        for (int64_t n = 0; n < samples; ++n) {
          const int64_t own = m * samples + n, before = (own + 11) % 12;
          for (int64_t i = 0; i < 3072; ++i) {
            const int64_t y = i / 32 % 32, column = i % 32;
            ASSERT_EQ(x.data<float>()[n * 3072 + i],
                      mixed(mix, int(y), int(column), whole.data<float>()[own * 3072 + i],
                            whole.data<float>()[before * 3072 + i]));
          }
          std::vector<float> expected(10);
          expected[size_t(classes.data<int32_t>()[own])] += mix.own;
          expected[size_t(classes.data<int32_t>()[before])] += mix.other;
          for (int64_t k = 0; k < 10; ++k) ASSERT_EQ(shares.data<float>()[n * 10 + k], expected[size_t(k)]);
        }
      }
    }
  }
  EXPECT_GT(pasted, 5);
  EXPECT_GT(blends, 5);
}

TEST(Loader, EvaluatesUnmixedWithSoftLabels) {
  LoaderOptions options{.batch = 8, .train = false};
  options.augment.mixup = 1;
  Loader loader(std::make_shared<MemorySet>(11), options);
  const Tensor y = Tensor::host({.shape = {8, 10}});
  loader.fill_labels({0, 1}, 0, y);  // samples 8, 9, 10 and padding
  for (int64_t n = 0; n < 8; ++n)
    for (int64_t k = 0; k < 10; ++k)
      EXPECT_EQ(y.data<float>()[n * 10 + k], float(n < 3 && k == (8 + n) % 10));
}

TEST(Loader, RefusesClassesAsLabelsOfMixedImages) {
  LoaderOptions options{.batch = 8};
  options.augment.cutmix = 1;
  Loader loader(std::make_shared<MemorySet>(11), options);
  expect_error([&] { loader.fill_labels({0, 0}, 0, labels(8)); }, {"mixed images", "soft labels"});
  expect_error(
      [&] {
        loader.fill_labels({0, 0}, 0, Tensor::host({.shape = {8, 5}}));
      },
      {"label", "classes 0 to 4"});
}

TEST(Loader, RefusesABatchThatCantBeCut) {
  expect_error([] { Loader(std::make_shared<MemorySet>(50), {.batch = 10, .microbatches = 4}); },
               {"batch of 10", "4 micro-batches"});
}

TEST(Loader, RefusesATensorOfAnotherShape) {
  Loader loader(std::make_shared<MemorySet>(50), {.batch = 10, .microbatches = 5});
  expect_error([&] { loader.fill_images({0, 0}, 0, images(3)); }, {"2 x 3 x 32 x 32", "3 x 3 x 32 x 32"});
}

}  // namespace
}  // namespace antichain
