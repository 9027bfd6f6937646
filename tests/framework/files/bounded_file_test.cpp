// Tests reading files, pipes and things that are no files, up to a bound.
#include "framework/bounded_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "framework/error.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

class BoundedFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  std::string sparse(int64_t bytes) const {
    const std::string file = path("sparse");
    std::ofstream(file).flush();
    std::filesystem::resize_file(file, uintmax_t(bytes));
    return file;
  }
  const TemporaryFolder folder_;
};

TEST_F(BoundedFile, IsReadWholeUpToItsBound) {
  for (const size_t size : {size_t(0), size_t(1), size_t(4096), size_t(100'000)}) {
    const std::string text(size, 'x');
    write_file(path("file"), text);
    EXPECT_EQ(read_bounded(path("file"), 100'000), text);
  }
  expect_error([&] { read_bounded(path("file"), 99'999); }, {path("file"), "97.66 KiB", "are the most"});
  EXPECT_FALSE(read_bounded("/proc/self/status", 100'000).empty()) << "its size is 0";
  expect_error([] { read_bounded("/proc/self/status", 10); }, {"more than 10 bytes"});
}

// Linux says so of the memory of this process at address 0.
TEST_F(BoundedFile, AReadErrorIsNotItsEnd) {
  expect_error([] { read_bounded("/proc/self/mem", 1000); }, {"/proc/self/mem", "Input/output error"});
  expect_error([] { read_file("/proc/self/mem"); }, {"/proc/self/mem", "Input/output error"});
}

TEST_F(BoundedFile, WhatIsNoFileIsRefused) {
  expect_error([&] { read_bounded(folder_.str(), 10); }, {"is a folder"});
  expect_error([] { read_bounded("/dev/zero", 10); }, {"/dev/zero", "is a device"});
  expect_error([] { read_bounded("/dev/null", 10); }, {"is a device"});
  expect_error([&] { read_bounded(path("gone"), 10); }, {"gone", "No such file"});
  expect_error([&] { read_bounded(path(std::string(300, 'n')), 10); }, {"File name too long"});
  std::filesystem::create_symlink("loop", path("loop"));
  expect_error([&] { read_bounded(path("loop"), 10); }, {"loop", "symbolic links"});
  expect_error([&] { read_weights(path("loop")); }, {"loop", "symbolic links"});
  expect_error([&] { read_weights(path(std::string(300, 'n'))); }, {"File name too long"});
}

TEST_F(BoundedFile, ThirtyGibibytesOfNothingAreNotRead) {
  expect_error([&] { read_file(sparse(int64_t(30) << 30)); }, {"30 GiB", "256 MiB are the most"});
  expect_error([&] { read_weights(sparse(int64_t(30) << 30)); }, {"30 GiB", "8 GiB are the most"});
}

TEST_F(BoundedFile, PipesAreReadToTheirEnd) {
  const std::string text(300'000, 'x');
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path("pipe")) << text; });
  EXPECT_EQ(read_bounded(path("pipe"), 300'000), text);
  writer.join();
}

TEST_F(BoundedFile, APipeIsNotWaitedForForEver) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error([&] { read_bounded(path("pipe"), 10, 0.02); }, {path("pipe"), "nothing has come", "0.02 s"});
  const int writer = ::open(path("pipe").c_str(), O_RDWR);
  ASSERT_EQ(::write(writer, "begun", 5), 5);
  expect_error([&] { read_bounded(path("pipe"), 10, 0.02); }, {"nothing has come"});
  ASSERT_EQ(::write(writer, "too much of it", 14), 14);
  expect_error([&] { read_bounded(path("pipe"), 10, 0.02); }, {"more than 10 bytes"});
  ::close(writer);
}

// The test has a process of its own, whose address space is limited.
TEST_F(BoundedFile, LackOfMemoryIsSaid) {
#if defined(__SANITIZE_ADDRESS__)  // GCC
  GTEST_SKIP() << "AddressSanitizer needs the address space";
#elif defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer needs the address space";
#endif
#endif
  const std::string file = sparse(int64_t(7) << 30);
  const auto read_with_little = [&] {
    const rlimit little{int64_t(4) << 30, int64_t(4) << 30};
    ::setrlimit(RLIMIT_AS, &little);
    try {
      read_bounded(file, most_weights_bytes);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(int(error.code()));
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(read_with_little(), ::testing::ExitedWithCode(int(ExitCode::out_of_memory)),
              "no memory for the 7 GiB");
}

}  // namespace
}  // namespace antichain
