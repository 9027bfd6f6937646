// Tests reading CIFAR's binary files.
#include "data/cifar.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>

#include "tests/data/image_of.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

TEST(Cifar10, ReadsRecordsInFileOrder) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", records(7));
  write_bytes(folder.path() / "data_batch_2.bin", records(5, 7));
  write_bytes(folder.path() / "test_batch.bin", records(3, 100));
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  ASSERT_EQ(sets.train->size(), 12);
  ASSERT_EQ(sets.test->size(), 3);
  EXPECT_EQ(sets.train->image_shape(), (Shape{3, 32, 32}));
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(sets.train->label(i), i % 10);
    const std::vector<uint8_t> pixels = image_of(*sets.train, i);
    for (size_t p = 0; p < pixels.size(); ++p) ASSERT_EQ(pixels[p], uint8_t((size_t(i) + p) % 256));
  }
  EXPECT_EQ(image_of(*sets.test, 2)[5], uint8_t(107));
}

TEST(Cifar10, FindsTheArchivesFolderAndItsClassNames) {
  const TemporaryFolder folder;
  const auto inner = folder.path() / "cifar-10-batches-bin";
  write_bytes(inner / "data_batch_1.bin", records(1));
  write_bytes(inner / "test_batch.bin", records(1));
  std::ofstream(inner / "batches.meta.txt")
      << "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  ASSERT_EQ(sets.train->classes(), 10);
  EXPECT_EQ(sets.train->class_names()[9], "truck");
  EXPECT_EQ(sets.train->name(), "CIFAR-10 (a subset)");
}

TEST(Cifar10, AMarkedFolderIsNeverCalledCifar10) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", records(1));
  write_bytes(folder.path() / "test_batch.bin", records(1));
  write_bytes(folder.path() / "GENERATED", {});
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  EXPECT_EQ(sets.train->name(), "generated (not CIFAR-10)");
  EXPECT_EQ(sets.test->name(), "generated (not CIFAR-10)");
}

TEST(Cifar10, NamesAMissingFolder) {
  expect_error([] { read_cifar(cifar10(), "/nowhere/at/all"); }, {"/nowhere/at/all", "data_batch_1.bin"});
}

TEST(Cifar10, NamesAMissingFile) {
  const TemporaryFolder folder;
  expect_error([&] { read_cifar(cifar10(), folder.str()); },
               {folder.str() + "/data_batch_1.bin", "No such file"});
  write_bytes(folder.path() / "data_batch_1.bin", records(1));
  expect_error([&] { read_cifar(cifar10(), folder.str()); },
               {folder.str() + "/test_batch.bin", "No such file"});
  write_bytes(folder.path() / "test_batch.bin", records(1));
  write_bytes(folder.path() / "data_batch_3.bin", records(1));
  expect_error([&] { read_cifar(cifar10(), folder.str()); },
               {"data_batch_2.bin is missing", "data_batch_3.bin"});
}

TEST(Cifar10, NamesATruncatedFileAndItsSize) {
  const TemporaryFolder folder;
  std::vector<uint8_t> bytes = records(2);
  bytes.pop_back();
  write_bytes(folder.path() / "data_batch_1.bin", bytes);
  write_bytes(folder.path() / "test_batch.bin", records(1));
  expect_error([&] { read_cifar(cifar10(), folder.str()); }, {"data_batch_1.bin", "6145", "3073"});
  write_bytes(folder.path() / "data_batch_1.bin", {});
  expect_error([&] { read_cifar(cifar10(), folder.str()); }, {"data_batch_1.bin", "0 bytes"});
}

TEST(Cifar10, NamesAWrongLabelByteAndItsRecord) {
  const TemporaryFolder folder;
  std::vector<uint8_t> bytes = records(5);
  bytes[3 * 3073] = 10;
  write_bytes(folder.path() / "data_batch_1.bin", records(5));
  write_bytes(folder.path() / "data_batch_2.bin", bytes);
  write_bytes(folder.path() / "test_batch.bin", records(1));
  expect_error([&] { read_cifar(cifar10(), folder.str()); }, {"data_batch_2.bin", "record 3", "label 10"});
}

TEST(Cifar10, RefusesAFileThatIsCutShortOrChangedWhileItIsRead) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data_batch_1.bin";
  write_bytes(file, records(5));
  write_bytes(folder.path() / "test_batch.bin", records(1));
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  image_of(*sets.train, 4);
  std::filesystem::resize_file(file, 4 * 3073);
  expect_error([&] { image_of(*sets.train, 4); }, {"data_batch_1.bin", "changed", "record 4"});
  EXPECT_EQ(sets.train->label(4), 4) << "labels are kept";
}

TEST(Cifar10, GoesOnWithAFileThatIsReplacedAndTells) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data_batch_1.bin";
  write_bytes(file, records(5));
  write_bytes(folder.path() / "test_batch.bin", records(1));
  const ImageSplits sets = read_cifar(cifar10(), folder.str());
  EXPECT_EQ(sets.train->replaced(), "");
  write_bytes(folder.path() / "new", records(5, 3));
  std::filesystem::rename(folder.path() / "new", file);
  EXPECT_EQ(image_of(*sets.train, 0)[0], 0) << "the file it was";
  EXPECT_NE(sets.train->replaced().find("data_batch_1.bin"), std::string::npos);
  EXPECT_EQ(sets.test->replaced(), "");
}

TEST(Cifar10, TheRealDataSet) {
  const char* directory = std::getenv("CIFAR10_DIR");
  if (directory == nullptr) GTEST_SKIP() << "CIFAR10_DIR is not set: the real CIFAR-10 is not checked";
  const ImageSplits sets = read_cifar(cifar10(), directory);
  if (sets.train->name() != "CIFAR-10") GTEST_SKIP() << directory << " holds " << sets.train->name();
  EXPECT_EQ(sets.train->size(), 50'000);
  EXPECT_EQ(sets.test->size(), 10'000);
  std::map<int, int> counts;
  for (int64_t i = 0; i < sets.train->size(); ++i) ++counts[sets.train->label(i)];
  for (int label = 0; label < 10; ++label) EXPECT_EQ(counts[label], 5'000);
  // The training pixels' means, which the normalisation uses, to the three digits that any re-encoding keeps.
  std::array<double, 3> sum{};
  for (int64_t i = 0; i < sets.train->size(); i += 10) {
    const std::vector<uint8_t> pixels = image_of(*sets.train, i);
    for (size_t p = 0; p < 3072; ++p) sum[p / 1024] += pixels[p] / 255.0;
  }
  const std::array<double, 3> mean{0.4914, 0.4822, 0.4465};
  // 5,000 images sampled: the standard error of a channel's mean is about 0.25 / sqrt(5000 · few) < 0.004.
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(sum[c] / (5'000 * 1024.0), mean[c], 0.01);
}

// Returns records of CIFAR-100's layout: record r has coarse label r % 20, fine label r % 100, and its pixel
// p is (r + p) % 256.
std::vector<uint8_t> records_of_100(int count) {
  std::vector<uint8_t> bytes;
  for (int r = 0; r < count; ++r) {
    bytes.insert(bytes.end(), {uint8_t(r % 20), uint8_t(r % 100)});
    for (int p = 0; p < 3072; ++p) bytes.push_back(uint8_t((r + p) % 256));
  }
  return bytes;
}

TEST(Cifar100, ReadsFineLabelsAndTheImagesBehindThem) {
  const TemporaryFolder folder;
  const auto inner = folder.path() / "cifar-100-binary";
  write_bytes(inner / "train.bin", records_of_100(123));
  write_bytes(inner / "test.bin", records_of_100(45));
  const ImageSplits sets = read_cifar(cifar100(), folder.str());
  EXPECT_EQ(sets.train->name(), "CIFAR-100 (a subset)");
  ASSERT_EQ(sets.train->size(), 123);
  ASSERT_EQ(sets.test->size(), 45);
  EXPECT_EQ(sets.train->classes(), 100);
  EXPECT_EQ(sets.train->class_names()[99], "class 99");
  EXPECT_FLOAT_EQ(sets.train->normalisation().mean[0], 0.5071f);
  for (const int64_t i : {0, 99, 100, 122}) {
    EXPECT_EQ(sets.train->label(i), i % 100);
    const std::vector<uint8_t> pixels = image_of(*sets.train, i);
    for (size_t p = 0; p < pixels.size(); ++p) ASSERT_EQ(pixels[p], uint8_t((size_t(i) + p) % 256));
  }
}

TEST(Cifar100, TakesTheNamesOfTheFineClasses) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "train.bin", records_of_100(1));
  write_bytes(folder.path() / "test.bin", records_of_100(1));
  std::ofstream names(folder.path() / "fine_label_names.txt");
  for (int i = 0; i < 100; ++i) names << "fine" << i << "\n";
  names.close();
  EXPECT_EQ(read_cifar(cifar100(), folder.str()).test->class_names()[7], "fine7");
}

TEST(Cifar100, RefusesWrongSizesAndLabels) {
  const TemporaryFolder folder;
  const auto read = [&] { read_cifar(cifar100(), folder.str()); };
  expect_error(read, {"train.bin", "expected the official binary layout: train.bin and test.bin"});
  std::vector<uint8_t> bytes = records_of_100(3);
  write_bytes(folder.path() / "test.bin", records_of_100(1));
  bytes[2 * 3074 + 1] = 100;
  write_bytes(folder.path() / "train.bin", bytes);
  expect_error(read, {"train.bin", "record 2", "label 100", "0 to 99"});
  bytes[3074] = 20;
  write_bytes(folder.path() / "train.bin", bytes);
  expect_error(read, {"train.bin", "record 1", "coarse label 20", "0 to 19"});
  bytes.pop_back();
  write_bytes(folder.path() / "train.bin", bytes);
  expect_error(read, {"train.bin is truncated", "9221 bytes", "3074"});
}

TEST(PublishedSets, AnotherFormOfTheSetIsNamed) {
  const struct {
    const char* file;
    const PublishedSet& expected;
    std::string what;
  } cases[] = {{"cifar-10-batches-py/data_batch_1", cifar10(), "CIFAR-10's version for Python or Matlab"},
               {"data_batch_1", cifar10(), "CIFAR-10's version for Python or Matlab"},
               {"data_batch_1.mat", cifar10(), "CIFAR-10's version for Python or Matlab"},
               {"cifar-100-python/train", cifar100(), "CIFAR-100's version for Python or Matlab"},
               {"cifar-100-python/train", cifar10(), "CIFAR-100's version for Python or Matlab"},
               {"train", cifar100(), "CIFAR-100's version for Python or Matlab"},
               {"cifar-10-binary.tar.gz", cifar10(), "an archive that is not unpacked"},
               {"cifar-10-batches-bin/readme.html", cifar10(), "official binary layout"},
               {"train/cat.png", cifar10(), "official binary layout"}};
  for (const auto& c : cases) {
    const TemporaryFolder folder;
    write_bytes(folder.path() / c.file, {1});
    expect_error([&] { read_cifar(c.expected, folder.str()); }, {folder.str(), c.what});
  }
  const TemporaryFolder folder;
  write_bytes(folder.path() / "x.tar.gz", {1});
  expect_error([&] { read_cifar(cifar10(), folder.str() + "/x.tar.gz"); }, {"x.tar.gz is an archive"});
}

TEST(PublishedSets, AFolderOfAnotherSetIsNamed) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "train.bin", records_of_100(1));
  write_bytes(folder.path() / "test.bin", records_of_100(1));
  EXPECT_EQ(&published_set_in(folder.str()), &cifar100());
  expect_error([&] { read_cifar(cifar10(), folder.str()); },
               {folder.str(), "files of CIFAR-100, not of CIFAR-10", "--dataset cifar100"});
  write_bytes(folder.path() / "cifar-10-batches-bin" / "data_batch_1.bin", records(1));
  EXPECT_EQ(&published_set_in(folder.str()), &cifar10());
  EXPECT_EQ(&published_set_in(folder.str(), cifar100()), &cifar100());
}

}  // namespace
}  // namespace antichain
