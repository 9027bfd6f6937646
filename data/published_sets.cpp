#include "data/published_sets.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace antichain {
namespace {

namespace fs = std::filesystem;

// The files' sizes follow from the numbers of images. CIFAR-100's mean and deviation are those of its
// training pixels to four digits, as they are usually given.
const std::array<PublishedSet, 2>& sets() {
  static const std::array<PublishedSet, 2> all = {
      PublishedSet{.option = "cifar10",
                   .name = "CIFAR-10",
                   .environment = "CIFAR10_DIR",
                   .url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                   .md5 = "c32a1d4ab5d03f1284b67883e8d87530",
                   .folder = "cifar-10-batches-bin",
                   .other_forms = "cifar-10-",
                   .names_file = "batches.meta.txt",
                   .train_files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                   "data_batch_4.bin", "data_batch_5.bin"},
                   .test_file = "test_batch.bin",
                   .train_images = 50'000,
                   .test_images = 10'000,
                   .groups = 0,
                   .classes = 10,
                   .normalisation = {},
                   .generated_instead = true},
      PublishedSet{
          .option = "cifar100",
          .name = "CIFAR-100",
          .environment = "CIFAR100_DIR",
          .url = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
          .md5 = "03b5dce01913d631647c71ecec9e9cb8",
          .folder = "cifar-100-binary",
          .other_forms = "cifar-100-",
          .names_file = "fine_label_names.txt",
          .train_files = {"train.bin"},
          .test_file = "test.bin",
          .train_images = 50'000,
          .test_images = 10'000,
          .groups = 20,
          .classes = 100,
          .normalisation = {.mean = {0.5071f, 0.4865f, 0.4409f}, .deviation = {0.2673f, 0.2564f, 0.2762f}},
          .generated_instead = false}};
  return all;
}

bool is_in(const PublishedSet& set, const std::string& directory) {
  const fs::path folder = folder_of(set, directory);
  std::error_code ignored;
  return fs::exists(folder / set.train_files.front(), ignored);
}

}  // namespace

std::span<const PublishedSet> published_sets() { return sets(); }
const PublishedSet& cifar10() { return sets()[0]; }
const PublishedSet& cifar100() { return sets()[1]; }

const PublishedSet* published_set(std::string_view option) {
  const auto found = std::ranges::find(sets(), option, &PublishedSet::option);
  return found != sets().end() ? &*found : nullptr;
}

std::string folder_of(const PublishedSet& set, const std::string& directory) {
  const fs::path nested = fs::path(directory) / set.folder;
  std::error_code ignored;
  return fs::is_directory(nested, ignored) ? nested.string() : directory;
}

const PublishedSet& published_set_in(const std::string& directory, const PublishedSet& expected) {
  if (is_in(expected, directory)) return expected;
  const auto found =
      std::ranges::find_if(sets(), [&](const PublishedSet& set) { return is_in(set, directory); });
  return found != sets().end() ? *found : expected;
}

}  // namespace antichain
