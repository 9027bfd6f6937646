// Kept profiles: found for the same subject only, and of no harm where they are damaged.
#include "app/profile_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

const ProfileSubject subject{.model = "m",
                             .graph_hash = "h",
                             .device = "NVIDIA H200, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.0.2, float32",
                             .program = "1.0 abc",
                             .microbatch = 32,
                             .microbatches = 8,
                             .threads = 1,
                             .ranks_at_once = 2};

Profile profile_of(const ProfileSubject& s) {
  Profile profile{.model = s.model, .graph_hash = s.graph_hash, .device = s.device, .nodes = {}};
  profile.microbatch = s.microbatch;
  profile.threads = s.threads;
  profile.ranks_at_once = s.ranks_at_once;
  profile.overhead_s = 1.5e-6;
  profile.nodes.push_back({.name = "image", .op = "input", .role = Role::input});
  return profile;
}

class OwnMemory : public testing::StandInBackend {
  bool host_memory() const override { return false; }
};

class Caches : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  TemporaryFolder folder_;
  const testing::StandInBackend host_;
  const OwnMemory device_;
  const Context on_host_{host_}, on_device_{device_};
};

TEST_F(Caches, FindWhatTheyKept) {
  const ProfileCache cache(path("deep/cache"), on_host_);
  EXPECT_FALSE(cache.find(subject));
  cache.keep(subject, profile_of(subject));
  const auto found = ProfileCache(path("deep/cache"), on_host_).find(subject);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_json(*found), to_json(profile_of(subject)));
  EXPECT_THAT(cache.file(subject), ::testing::HasSubstr("deep/cache/m-32-"));
}

TEST_F(Caches, FindNothingForAnotherSubject) {
  const ProfileCache cache(path("cache"), on_host_);
  cache.keep(subject, profile_of(subject));
  using Change = std::function<void(ProfileSubject&)>;
  const std::map<std::string, Change> changes = {
      {"device", [](auto& s) { s.device = "NVIDIA A100, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.0.2, float32"; }},
      {"library", [](auto& s) { s.device = "NVIDIA H200, CUDA 13.0, cuDNN 9.20.0, cuBLAS 13.0.2, float32"; }},
      {"program", [](auto& s) { s.program = "1.0 abd"; }},
      {"graph", [](auto& s) { s.graph_hash = "i"; }},
      {"model", [](auto& s) { s.model = "n"; }},
      {"micro-batch", [](auto& s) { s.microbatch = 64; }},
      {"micro-batches", [](auto& s) { s.microbatches = 1; }},
      {"threads", [](auto& s) { s.threads = 2; }},
      {"ranks", [](auto& s) { s.ranks_at_once = 1; }}};
  for (const auto& [what, change] : changes) {
    ProfileSubject other = subject;
    change(other);
    EXPECT_FALSE(cache.find(other)) << what;
    cache.keep(other, profile_of(other));
    EXPECT_TRUE(cache.find(subject) && cache.find(other)) << what << ": each has a file of its own";
  }
}

// A file that was copied over another one's place.
TEST_F(Caches, FindNothingInAFileOfAnotherSubject) {
  const ProfileCache cache(path("cache"), on_host_);
  ProfileSubject other = subject;
  other.device = "NVIDIA A100";
  cache.keep(subject, profile_of(other));
  EXPECT_FALSE(cache.find(subject));
  write_file(cache.file(subject), "{");
  expect_error([&] { cache.find(subject); }, {cache.file(subject)});
}

TEST_F(Caches, AreOffOnCpusUnlessAskedFor) {
  ::setenv("XDG_CACHE_HOME", folder_.str().c_str(), 1);
  EXPECT_TRUE(ProfileCache("auto", on_host_).off());
  EXPECT_TRUE(ProfileCache("none", on_device_).off());
  const ProfileCache usual("auto", on_device_);
  EXPECT_FALSE(usual.off());
  EXPECT_THAT(usual.file(subject), ::testing::StartsWith(path("antichain/profiles/m-32-")));
  ::unsetenv("XDG_CACHE_HOME");
  ProfileCache("none", on_host_).keep(subject, profile_of(subject));
  EXPECT_FALSE(ProfileCache("none", on_host_).find(subject));
}

}  // namespace
}  // namespace antichain
