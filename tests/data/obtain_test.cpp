// Tests where a data set comes from: a folder, the cache, an archive, or generated images.
#include "data/obtain.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "data/cifar.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

// Each test begins without CIFAR10_DIR, whatever the caller's environment.
class Obtain : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("CIFAR10_DIR")) saved_ = value;
    unsetenv("CIFAR10_DIR");
  }
  void TearDown() override {
    if (!saved_.empty()) setenv("CIFAR10_DIR", saved_.c_str(), 1);
  }
  std::string cache() const { return (folder_.path() / "cache").string(); }
  ObtainOptions options(const std::string& url, const std::string& md5) const {
    return {.cache_dir = cache(),
            .url = url,
            .md5 = md5,
            .limit_s = 2,
            .synthetic = {.train_images = 12, .test_images = 4}};
  }
  // Makes a small archive in the official form, and returns its file:// address.
  std::string archive(const std::string& inner = "cifar-10-batches-bin") const {
    const fs::path source = folder_.path() / "source" / inner;
    write_bytes(source / "data_batch_1.bin", records(6));
    write_bytes(source / "test_batch.bin", records(2));
    const std::string file = (folder_.path() / "archive.tar.gz").string();
    EXPECT_EQ(run_command({"tar", "-czf", file, "-C", source.parent_path().string(), inner}).status, 0);
    return file;
  }
  static std::string md5(const std::string& file) {
    return run_command({"md5sum", file}).output.substr(0, 32);
  }
  static bool has_curl() { return run_command({"curl", "--version"}).status == 0; }
  int parts_left() const {  // unfinished work folders
    int count = 0;
    for (const auto& entry : fs::directory_iterator(cache())) count += entry.path().extension() == ".part";
    return count;
  }

  TemporaryFolder folder_;
  std::string saved_;
};

TEST_F(Obtain, AUsersFolderIsTakenAsItIs) {
  EXPECT_EQ(obtain_published(cifar10(), {.data_dir = "/somewhere"}).directory, "/somewhere");
  setenv("CIFAR10_DIR", "/elsewhere", 1);
  EXPECT_EQ(obtain_published(cifar10(), {.data_dir = "/somewhere"}).directory, "/somewhere");
  EXPECT_EQ(obtain_published(cifar10()).directory, "/elsewhere");
  unsetenv("CIFAR10_DIR");
}

TEST_F(Obtain, AGeneratedSetThatLostSomethingIsMadeAnew) {
  const Obtained first = obtain_synthetic(options("", ""));
  const uint64_t contents = read_cifar(cifar10(), first.directory).train->contents();
  const fs::path folder = first.directory;
  const std::vector<std::function<void()>> losses = {
      [&] { fs::resize_file(folder / "data_batch_1.bin", 3073 * 6); },
      [&] { fs::remove(folder / "test_batch.bin"); }, [&] { fs::remove(folder / "GENERATED"); },
      [&] { fs::remove_all(folder), write_bytes(folder, {1}); }};
  for (const auto& lose : losses) {
    lose();
    const Obtained again = obtain_synthetic(options("", ""));
    EXPECT_NE(again.note.find("were not whole: they are made anew"), std::string::npos) << again.note;
    EXPECT_EQ(read_cifar(cifar10(), again.directory).train->contents(), contents);
    EXPECT_EQ(read_cifar(cifar10(), again.directory).train->name(), "generated (not CIFAR-10)");
    EXPECT_EQ(parts_left(), 0);
    EXPECT_EQ(obtain_synthetic(options("", "")).note, "");
  }
}

TEST_F(Obtain, UnpacksAVerifiedArchiveIntoTheCacheOnce) {
  if (!has_curl()) GTEST_SKIP() << "curl is not installed";
  const std::string file = archive();
  EXPECT_EQ(published_folder(cifar10(), options("", "")), "");
  const Obtained first = obtain_published(cifar10(), options("file://" + file, md5(file)));
  EXPECT_EQ(published_folder(cifar10(), options("", "")), first.directory);
  EXPECT_NE(first.note.find("downloaded"), std::string::npos);
  EXPECT_EQ(read_cifar(cifar10(), first.directory).train->size(), 6);
  EXPECT_EQ(parts_left(), 0);
  fs::remove(file);
  const Obtained second = obtain_published(cifar10(), options("file://" + file, "-"));
  EXPECT_EQ(second.directory, first.directory);
  EXPECT_EQ(second.note, "");
}

TEST_F(Obtain, AWrongChecksumIsSaidAndNothingIsKept) {
  if (!has_curl()) GTEST_SKIP() << "curl is not installed";
  const std::string file = archive();
  const Obtained got = obtain_published(cifar10(), options("file://" + file, "0123"));
  EXPECT_NE(got.note.find("MD5 sum is " + md5(file) + ", not 0123"), std::string::npos) << got.note;
  EXPECT_EQ(read_cifar(cifar10(), got.directory).train->name(), "generated (not CIFAR-10)");
  EXPECT_FALSE(fs::exists(fs::path(cache()) / "cifar-10-batches-bin"));
  EXPECT_EQ(parts_left(), 0);
}

TEST_F(Obtain, AnArchiveOfSomethingElseIsSaid) {
  if (!has_curl()) GTEST_SKIP() << "curl is not installed";
  const std::string file = archive("other-folder");
  const Obtained got = obtain_published(cifar10(), options("file://" + file, md5(file)));
  EXPECT_NE(got.note.find("could not be unpacked"), std::string::npos) << got.note;
}

TEST_F(Obtain, WithoutANetworkTheImagesAreGeneratedAndSaidToBe) {
  const Obtained got = obtain_published(cifar10(), options("file:///nowhere/archive.tar.gz", "0123"));
  EXPECT_NE(got.note.find("not CIFAR-10"), std::string::npos) << got.note;
  EXPECT_EQ(got.note.find('\n'), std::string::npos);
  const ImageSplits sets = read_cifar(cifar10(), got.directory);
  EXPECT_EQ(sets.train->name(), "generated (not CIFAR-10)");
  EXPECT_EQ(sets.train->size(), 12);
  EXPECT_EQ(parts_left(), 0);
  EXPECT_EQ(obtain_synthetic(options("", "")).directory, got.directory);
}

TEST_F(Obtain, NothingTakesThePlaceOfCifar100) {
  setenv("CIFAR100_DIR", "/elsewhere", 1);
  EXPECT_EQ(obtain_published(cifar100()).directory, "/elsewhere");
  unsetenv("CIFAR100_DIR");
  expect_error([&] { obtain_published(cifar100(), options("file:///nowhere/archive.tar.gz", "0123")); },
               {"CIFAR-100 was not given (--data-dir or CIFAR100_DIR)", "cifar-100-binary.tar.gz"});
}

TEST(Command, ReportsOutputStatusAndAbsence) {
  const CommandResult said = run_command({"echo", "a b", "$HOME"});
  EXPECT_EQ(said.status, 0);
  EXPECT_EQ(said.output, "a b $HOME\n");
  EXPECT_EQ(run_command({"false"}).status, 1);
  EXPECT_EQ(run_command({"antichain-no-such-program"}).status, 127);
}

}  // namespace
}  // namespace antichain
