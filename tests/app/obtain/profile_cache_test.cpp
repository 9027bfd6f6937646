// Kept profiles are found for the same subject only, and do no harm where they are damaged.
#include "app/obtain/profile_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>

#include "app/obtain/profile.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/variable.h"

namespace antichain {
namespace {

const ProfileSubject subject{.model = "m",
                             .graph_hash = "h",
                             .device = "NVIDIA H200, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.0.2, float32",
                             .engine = "the instruction set avx2, ",
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

class Caches : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  TemporaryFolder folder_;
};

TEST_F(Caches, FindWhatTheyKept) {
  const ProfileCache cache(path("deep/cache"));
  EXPECT_FALSE(cache.find(subject));
  cache.keep(subject, profile_of(subject));
  const auto found = ProfileCache(path("deep/cache")).find(subject);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_json(found->profile), to_json(profile_of(subject)));
  EXPECT_LT(found->age_s, 1e5);
  std::filesystem::last_write_time(cache.file(subject),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(72));
  EXPECT_EQ(age(cache.find(subject)->age_s), "3 days");
  EXPECT_THAT(cache.file(subject), ::testing::HasSubstr("deep/cache/m-32-"));
}

TEST_F(Caches, FindNothingForAnotherSubject) {
  const ProfileCache cache(path("cache"));
  cache.keep(subject, profile_of(subject));
  using Change = std::function<void(ProfileSubject&)>;
  const std::map<std::string, Change> changes = {
      {"device", [](auto& s) { s.device = "NVIDIA A100, CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.0.2, float32"; }},
      {"library", [](auto& s) { s.device = "NVIDIA H200, CUDA 13.0, cuDNN 9.20.0, cuBLAS 13.0.2, float32"; }},
      {"instructions", [](auto& s) { s.engine = "the instruction set avx512_core, "; }},
      {"cores", [](auto& s) { s.cores = 2; }},
      {"the host's cores", [](auto& s) { s.cores_of_host = 2; }},
      {"program", [](auto& s) { s.program = "1.0 abd"; }},
      {"optimiser", [](auto& s) { s.optimiser = "sgd, 0 bytes"; }},
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

// Such are a file that was copied to another one's place, one that was cut short, and a folder.
TEST_F(Caches, UseNoFileThatIsOfNoUse) {
  const ProfileCache cache(path("cache"));
  ProfileSubject other = subject;
  other.device = "NVIDIA A100";
  cache.keep(subject, profile_of(other));
  expect_error([&] { cache.find(subject); }, {cache.file(subject), "another network or machine"});
  write_file(cache.file(subject), "{");
  expect_error([&] { cache.find(subject); }, {cache.file(subject)});
  std::filesystem::remove(cache.file(subject));
  std::filesystem::create_directory(cache.file(subject));
  EXPECT_FALSE(cache.find(subject));
}

TEST_F(Caches, AreWhereTheEnvironmentSays) {
  const Variable folder("XDG_CACHE_HOME", folder_.str());
  {
    const Variable unset("ANTICHAIN_PROFILE_CACHE", "");
    EXPECT_THAT(ProfileCache("auto").file(subject), ::testing::StartsWith(path("antichain/profiles/m-32-")));
  }
  const Variable other("ANTICHAIN_PROFILE_CACHE", path("other"));
  EXPECT_THAT(ProfileCache("auto").file(subject), ::testing::StartsWith(path("other/m-32-")));
  EXPECT_THAT(ProfileCache(path("third")).file(subject), ::testing::StartsWith(path("third/m-32-")));
  const Variable none("ANTICHAIN_PROFILE_CACHE", "none");
  EXPECT_TRUE(ProfileCache("auto").off());
  EXPECT_TRUE(ProfileCache("none").off());
  ProfileCache("none").keep(subject, profile_of(subject));
  EXPECT_FALSE(ProfileCache("none").find(subject));
}

TEST(KeptProfiles, AreThoseOfIdleMachines) {
  EXPECT_TRUE(worth_keeping(0.05, 3, 3));
  EXPECT_TRUE(worth_keeping(0.05, 30, 3));
  EXPECT_FALSE(worth_keeping(0.3, 3, 3));
  EXPECT_FALSE(worth_keeping(0.05, 0.1, 3)) << "of profile --seconds 0.1";
}

// The network as a command obtains it on a CPU.
TEST_F(Caches, AreAskedBeforeAnythingIsMeasured) {
  register_cpu_backend();
  Context context(backend("cpu"), 1);
  const NetworkOptions network{.batch = 2, .microbatches = 2};
  const Graph graph = lower(make_model("resnet20", {.microbatch = 1}), backend("cpu"));
  const ProfileSubject resnet20 = profile_subject(graph, *default_optimiser(), context, 2, 1);
  SoloTransport alone;
  const PlanningOptions planning{.profile_cache = path("cache")};
  const ProfileCache cache(planning.profile_cache);
  const auto obtain = [&](std::string& said) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Rank rank{alone, context};
    const Profile profile = obtain_profile({}, planning, network, graph, default_optimiser(), rank, {});
    std::fflush(stdout);
    said = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    return profile;
  };
  Profile kept = unpriced(graph, resnet20.device);
  kept.overhead_s = 42;  // of no measurement
  cache.keep(resnet20, kept);
  std::string said;
  EXPECT_EQ(obtain(said).overhead_s, 42);
  EXPECT_THAT(said, ::testing::MatchesRegex(
                        "Profile: kept from a run [0-9]+ [a-z]+ ago .--profile-cache none .*\n\n"));

  kept.device = "another machine";
  cache.keep(resnet20, kept);
  EXPECT_LT(obtain(said).overhead_s, 42);
  EXPECT_THAT(said, ::testing::HasSubstr("antichain: a kept profile is of no use, so it is measured anew: "));
}

TEST(Ages, AreShort) {
  EXPECT_EQ(age(40), "40 s");
  EXPECT_EQ(age(300), "5 min");
  EXPECT_EQ(age(3 * 3600), "3 h");
  EXPECT_EQ(age(47 * 3600), "47 h");
}

}  // namespace
}  // namespace antichain
