// Tests a checkpoint's folder from outside: what was written reads back, and any change is noticed before the
// checkpoint is used.
#include "framework/files/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "framework/files/checkpoint_folder.h"
#include "framework/files/folder_lock.h"
#include "framework/files/hdf5.h"
#include "framework/json.h"
#include "framework/random.h"
#include "tests/another_second.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

// Writes a file with one parameter, its momentum and a count to the folder of a checkpoint that is being
// written.
CheckpointFile write_stage(const CheckpointFolder& folder, int64_t step, int stage) {
  const std::string name = "conv" + std::to_string(stage) + ".weight";
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(step) + float(i) / 7;
  SyncedFile file(folder.partial_of(step) + "/" + checkpoint_file_name(stage), [] {});
  write_hdf5(
      {{name, "", {4, 6}, {}},
       {name, "momentum", {4, 6}, {}},
       {"bn" + std::to_string(stage) + ".count", "", {}, step}},
      [&](size_t) { return values.data(); }, [&](std::string_view bytes) { file.write(bytes); });
  file.finish();
  return {checkpoint_file_name(stage),
          file.bytes(),
          file.hash(),
          {{name, {4, 6}, true},
           {"momentum/" + name, {4, 6}, true},
           {"bn" + std::to_string(stage) + ".count", {}, false}}};
}

// `spoil` changes the folder before rank 0 checks it.
Manifest write_checkpoint(const CheckpointFolder& folder, int64_t step,
                          const std::function<void(const std::string& partial)>& spoil = {}) {
  folder.begin(step);
  Manifest manifest{.program = "0.1.0",
                    .model = {{"model", "resnet20"}, {"classes", "10"}},
                    .recipe = {{"batch", "16"}},
                    .setting = {{"plan", "abc"}},
                    .position = {.step = step,
                                 .epoch = 1,
                                 .batch = 2,
                                 .epoch_steps = 2,
                                 .epoch_loss = 0.1,
                                 .epoch_correct = 3,
                                 .epoch_s = 1.5,
                                 .loss = 2.25,
                                 .best = {.step = 1, .loss = 0.5, .accuracy = 0.75, .since = 2},
                                 .last = {.step = 3, .loss = 0.1, .accuracy = 0.7}}};
  for (int stage = 0; stage < 2; ++stage) manifest.files.push_back(write_stage(folder, step, stage));
  if (spoil) spoil(folder.partial_of(step));
  folder.publish(manifest);
  return manifest;
}

std::string bytes_of(const std::string& path) { return read_file(path); }
void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class Checkpoint : public ::testing::Test {
 protected:
  TemporaryFolder temporary_;
  CheckpointFolder folder_{temporary_.str()};
};

TEST_F(Checkpoint, ReadsBackAsWritten) {
  const Manifest written = write_checkpoint(folder_, 7);
  const Manifest read = verify_checkpoint(folder_.of_step(7));
  EXPECT_EQ(to_json(read), to_json(written));
  EXPECT_EQ(read.position.epoch_loss, 0.1);  // all bits
  EXPECT_EQ(read.position.last.loss, 0.1);
  const auto tensors = read_hdf5(read_checkpoint_file(folder_.of_step(7), read.files[1]),
                                 {"momentum/conv1.weight", "bn1.count"}, "stage-1.h5");
  EXPECT_EQ(std::get<0>(tensors[0].values)[1], 7 + 1.0f / 7);
  EXPECT_EQ(std::get<1>(tensors[1].values)[0], 7);
}

TEST_F(Checkpoint, EqualStatesAreEqualFiles) {
  const std::vector<CheckpointFile> first = write_checkpoint(folder_, 7).files;
  Weights weights;
  weights.add({"conv.weight", {2}, std::vector<float>{1, 2}});
  const std::string exported = encode(weights, WeightFormat::hdf5);
  wait_for_another_second();
  const std::vector<CheckpointFile> second = write_checkpoint(folder_, 7).files;
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i].hash, second[i].hash) << first[i].name << " has a date";
  EXPECT_EQ(encode(weights, WeightFormat::hdf5), exported);
}

// This happens where a rank's host has another disk under the folder's name.
TEST_F(Checkpoint, IsNotCompleteWhereAFileIsNotAsItWasWritten) {
  const CheckpointFolder folder(temporary_.str(), 0.1);
  write_checkpoint(folder, 1);
  const std::map<std::string, std::function<void(const std::string&)>> ways = {
      {"No such file", [](const std::string& path) { fs::remove(path); }},
      {"exactly", [](const std::string& path) { fs::resize_file(path, 100); }},
      {"does not have the hash", [](const std::string& path) {
         std::string bytes = bytes_of(path);
         bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 1);
         overwrite(path, bytes);
       }}};
  for (const auto& way : ways) {
    const auto& spoil = way.second;
    expect_error(
        [&] { write_checkpoint(folder, 2, [&](const std::string& p) { spoil(p + "/stage-1.h5"); }); },
        {"stage-1.h5", way.first, "do all hosts share this folder?"});
    folder.discard(2);
    EXPECT_EQ(folder.list(), std::vector<std::string>{folder.of_step(1)});
  }
}

// A file server may tell of a file late.
TEST_F(Checkpoint, WaitsForAFileThatComesLate) {
  std::thread server;
  write_checkpoint(folder_, 2, [&](const std::string& partial) {
    fs::rename(partial + "/stage-1.h5", partial + "/late");
    server = std::thread([=] {
      ::usleep(50'000);
      fs::rename(partial + "/late", partial + "/stage-1.h5");
    });
  });
  server.join();
  EXPECT_NO_THROW(verify_checkpoint(folder_.of_step(2)));
}

TEST_F(Checkpoint, TheNewestWholeOneIsTaken) {
  EXPECT_EQ(newest_whole_checkpoint(folder_.path()), "");
  for (const int64_t step : {1, 2, 3}) write_checkpoint(folder_, step);
  fs::resize_file(folder_.of_step(3) + "/stage-0.h5", 100);
  fs::remove(folder_.of_step(2) + "/manifest.json");
  EXPECT_EQ(newest_whole_checkpoint(folder_.path()), folder_.of_step(1));
  fs::remove_all(folder_.of_step(1));
  expect_error([&] { newest_whole_checkpoint(folder_.path()); },
               {"no checkpoint in", "stage-0.h5 has 100 bytes", "has no manifest.json"});
}

TEST_F(Checkpoint, KeepsNumbersThatAreNone) {
  Manifest manifest;
  manifest.position.epoch_loss = std::numeric_limits<double>::quiet_NaN();
  manifest.position.loss = -std::numeric_limits<double>::infinity();
  const TrainPosition read = manifest_from_json(to_json(manifest), "m").position;
  EXPECT_TRUE(std::isnan(read.epoch_loss));
  EXPECT_EQ(read.loss, manifest.position.loss);
}

// Every file in turn, at any bit: 1,000 samples, and the manifest more often than its size would give it.
TEST_F(Checkpoint, AnyFlippedBitIsNoticed) {
  write_checkpoint(folder_, 7);
  std::mt19937 random(1);
  const char* names[] = {"manifest.json", "stage-0.h5", "stage-1.h5"};
  for (int sample = 0; sample < 1000; ++sample) {
    const std::string path = folder_.of_step(7) + "/" + names[sample % 3], good = bytes_of(path);
    std::string bad = good;
    const size_t bit = random() % (8 * bad.size());
    bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
    overwrite(path, bad);
    EXPECT_THROW(verify_checkpoint(folder_.of_step(7)), Damaged) << path << ", bit " << bit;
    overwrite(path, good);
  }
  verify_checkpoint(folder_.of_step(7));
}

TEST_F(Checkpoint, AnyLossOfBytesIsNoticed) {
  write_checkpoint(folder_, 7);
  for (const char* name : {"manifest.json", "stage-0.h5"}) {
    const std::string path = folder_.of_step(7) + "/" + name, good = bytes_of(path);
    for (size_t i = 0; i < 50; ++i) {
      overwrite(path, good.substr(0, good.size() * i / 50));
      EXPECT_THROW(verify_checkpoint(folder_.of_step(7)), Damaged) << name << " cut to " << i << "/50";
    }
    overwrite(path, good + '\0');
    EXPECT_THROW(verify_checkpoint(folder_.of_step(7)), Damaged) << name << " with a byte more";
    overwrite(path, good);
  }
}

// Manifests are refused even where the hash at their end fits what was changed.
TEST_F(Checkpoint, RefusesManifestsThatAreNotOurs) {
  const Manifest good = write_checkpoint(folder_, 7);
  for (const std::string name : {"../stage-0.h5", "/etc/passwd", "stage-0.h5/../x", "stage-.h5",
                                 "stage-1x.h5", "stage-00000000000.h5", "", "manifest.json"}) {
    Manifest manifest = good;
    manifest.files[0].name = name;
    EXPECT_THROW(manifest_from_json(to_json(manifest), "m"), Damaged) << name;
  }
  Manifest twice = good;
  twice.files[1] = twice.files[0];
  EXPECT_THROW(manifest_from_json(to_json(twice), "m"), Damaged);
  std::string edited = to_json(good);
  edited.replace(edited.find("\"batch\": \"16\""), 13, "\"batch\": \"32\"");
  expect_error([&] { manifest_from_json(edited, "m"); }, {"can't be edited"});
}

TEST_F(Checkpoint, RefusesNewerFormatsButNotAsDamage) {
  std::string text = to_json(Manifest{.program = "9.9"});
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  text.resize(text.size() - 32);
  text += fmt::format(",\n \"xxh3\": \"{:016x}\"\n}}\n", hash_bytes(text));
  try {
    manifest_from_json(text, "m");
    FAIL();
  } catch (const Damaged&) {
    FAIL() << "an older checkpoint would be taken in silence";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("format 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("9.9"), std::string::npos) << error.what();
  }
}

TEST_F(Checkpoint, FollowsNoLinks) {
  write_checkpoint(folder_, 7);
  const std::string file = folder_.of_step(7) + "/stage-0.h5",
                    manifest = folder_.of_step(7) + "/manifest.json";
  for (const std::string& path : {file, manifest}) {
    fs::rename(path, temporary_.path() / "elsewhere");
    fs::create_symlink(temporary_.path() / "elsewhere", path);
    expect_error([&] { verify_checkpoint(folder_.of_step(7)); }, {"is a link"});
    fs::remove(path);
    fs::rename(temporary_.path() / "elsewhere", path);
  }
  fs::create_directory_symlink(folder_.of_step(7), folder_.of_step(8));
  expect_error([&] { verify_checkpoint(folder_.of_step(8)); }, {"is a link"});
  fs::remove(manifest);
  expect_error([&] { verify_checkpoint(folder_.of_step(7)); }, {"has no manifest.json"});
}

TEST_F(Checkpoint, KeepsTheNewestAndWhatIsNewerThanTheRun) {
  for (const int64_t step : {1, 2, 3, 9}) write_checkpoint(folder_, step);
  folder_.prune(3, 2);
  EXPECT_EQ(folder_.list(),
            (std::vector<std::string>{folder_.of_step(9), folder_.of_step(3), folder_.of_step(2)}));
}

TEST_F(Checkpoint, ReplacesOneOfTheSameStep) {
  write_checkpoint(folder_, 7);
  overwrite(folder_.of_step(7) + "/stage-0.h5", "spoilt");
  write_checkpoint(folder_, 7);
  verify_checkpoint(folder_.of_step(7));
  EXPECT_EQ(folder_.clean(), 0);
}

TEST_F(Checkpoint, CleansWhatTornAttemptsLeft) {
  write_checkpoint(folder_, 7);
  folder_.begin(8);
  write_stage(folder_, 8, 0);
  fs::rename(folder_.of_step(7), temporary_.path() / ".removed-000000000007");
  write_checkpoint(folder_, 6);
  fs::create_directory(temporary_.path() / ".partial-mine");  // none of our names
  EXPECT_EQ(folder_.clean(), 2);
  EXPECT_EQ(folder_.list(), std::vector<std::string>{folder_.of_step(6)});
  EXPECT_TRUE(fs::exists(temporary_.path() / ".partial-mine"));
}

// A name alone makes no checkpoint.
TEST_F(Checkpoint, LeavesWhatTheProgramDidNotMake) {
  for (const int64_t step : {3, 4, 5}) write_checkpoint(folder_, step);
  const auto at = [&](const std::string& name) { return temporary_.path() / name; };
  const std::vector<std::string> kept = {"step-1/notes.txt",
                                         "step-000000000001/notes.txt",
                                         "step-000000000002/manifest.json",  // of something else
                                         "step-000000000003/notes.txt",      // within a checkpoint
                                         ".removed-1/notes.txt",
                                         ".removed-000000000001/notes.txt",
                                         ".removed-000000000002/stage-0.h5/notes.txt",
                                         ".partial-000000000008/manifest.json",
                                         ".partial-000000000009/notes.txt",
                                         ".partial-best-000000000001/notes.txt",
                                         ".token-github",
                                         ".token-0123456789abcdef-1"};  // not empty
  for (const std::string& name : kept) {
    fs::create_directories(at(name).parent_path());
    overwrite(at(name), "precious");
  }
  const std::vector<std::string> links = {"step-000000000000", ".partial-000000000007",
                                          ".removed-000000000007"};
  fs::create_directory(at("elsewhere"));
  overwrite(at("elsewhere/manifest.json"), std::string(manifest_beginning));
  for (const std::string& name : links) fs::create_directory_symlink(at("elsewhere"), at(name));
  fs::create_directory(at(".removed-000000000008"));
  overwrite(at(".token-0123456789abcdef-0"), "");

  EXPECT_EQ(folder_.clean(), 4) << "two links, an empty folder and a token";
  folder_.prune(5, 1);
  for (const std::string& name : kept) EXPECT_EQ(bytes_of(at(name)), "precious") << name;
  for (const std::string& name : links) EXPECT_FALSE(fs::exists(fs::symlink_status(at(name)))) << name;
  EXPECT_TRUE(fs::exists(at("elsewhere/manifest.json")));
  EXPECT_FALSE(fs::exists(folder_.of_step(4)));
  EXPECT_TRUE(fs::exists(folder_.of_step(3) + "/stage-0.h5"));

  for (const int64_t step : {1, 2}) {
    expect_error([&] { write_checkpoint(folder_, step); }, {folder_.of_step(step), "is in the way"});
    folder_.discard(step);
  }
  expect_error([&] { folder_.begin(9); }, {".partial-000000000009", "notes.txt"});
  fs::create_directory_symlink(at("elsewhere"), at("step-000000000006"));
  write_checkpoint(folder_, 6);
  EXPECT_EQ(verify_checkpoint(folder_.of_step(6)).position.step, 6);
  EXPECT_TRUE(fs::exists(at("elsewhere/manifest.json")));
}

// A copy or a move under another step's name would send a run back.
TEST_F(Checkpoint, ANameOfAnotherStepIsRefused) {
  for (const int64_t step : {2, 4}) write_checkpoint(folder_, step);
  fs::copy(folder_.of_step(2), folder_.of_step(9));
  expect_error([&] { verify_checkpoint(folder_.of_step(9)); }, {"contradict each other"});
  EXPECT_EQ(newest_whole_checkpoint(folder_.path()), folder_.of_step(4));
  folder_.prune(9, 1);
  EXPECT_TRUE(fs::exists(folder_.of_step(9))) << "the program did not make it";
}

// The folder itself may be a link to a larger disk.
TEST_F(Checkpoint, TheFolderMayBeALink) {
  fs::create_directory(temporary_.path() / "disk");
  fs::create_directory_symlink("disk", temporary_.path() / "run");
  const CheckpointFolder folder(temporary_.str() + "/run");
  const FolderLock lock(folder.path());
  for (const int64_t step : {1, 2, 3}) write_checkpoint(folder, step), folder.prune(step, 1);
  EXPECT_EQ(folder.list(), std::vector<std::string>{folder.of_step(3)});
  EXPECT_EQ(folder.clean(), 0);
}

TEST_F(Checkpoint, ALockOfSomethingElseIsKept) {
  for (const std::string text : {"my notes", "process 1 on x\nmy notes\n"}) {
    overwrite(temporary_.str() + "/lock", text);
    expect_error([&] { FolderLock(temporary_.str()); }, {"is no lock of antichain"});
    EXPECT_EQ(bytes_of(temporary_.str() + "/lock"), text);
  }
  overwrite(temporary_.str() + "/lock", "process 1 on x\n");
  EXPECT_NO_THROW(FolderLock(temporary_.str()));
  fs::create_hard_link(temporary_.path() / "lock", temporary_.path() / "another name");
  expect_error([&] { FolderLock(temporary_.str()); }, {"is no lock of antichain"});
}

// Root may list every folder and use it, so a process of another user tries.
TEST_F(Checkpoint, FoldersThatCantBeUsedAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t nobody = 65534;
  fs::create_directory(temporary_.path() / "own");
  ASSERT_EQ(::chown((temporary_.str() + "/own").c_str(), nobody, nobody), 0);
  fs::permissions(temporary_.path(), fs::perms::all);
  fs::permissions(temporary_.path() / "own", fs::perms(0333));
  ASSERT_EQ(::seteuid(nobody), 0);
  expect_error([&] { FolderLock(temporary_.str()); }, {"belongs to another user, of number 0"});
  const CheckpointFolder unlisted(temporary_.str() + "/own");
  expect_error([&] { unlisted.list(); }, {"can't list the folder", "/own", "Permission denied"});
  expect_error([&] { unlisted.clean(); }, {"can't list the folder"});
  fs::permissions(temporary_.path() / "own", fs::perms(0700));
  write_checkpoint(unlisted, 1), write_checkpoint(unlisted, 2);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::chown(unlisted.of_step(2).c_str(), 0, 0), 0);
  fs::permissions(unlisted.of_step(2), fs::perms(0700));
  ASSERT_EQ(::seteuid(nobody), 0);
  EXPECT_EQ(newest_whole_checkpoint(unlisted.path()), unlisted.of_step(1)) << "the other can't be entered";
  unlisted.prune(2, 1);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(fs::exists(unlisted.of_step(2)));
}

TEST_F(Checkpoint, NamesEachDifference) {
  const auto sentences = differences({{"batch", "16"}, {"seed", "1"}, {"old", "x"}},
                                     {{"batch", "32"}, {"seed", "1"}, {"new", "y"}});
  EXPECT_EQ(sentences, (std::vector<std::string>{"batch is 16 in the checkpoint, but 32 here",
                                                 "old is x in the checkpoint, but not known here",
                                                 "new is not known in the checkpoint, but y here"}));
}

TEST_F(Checkpoint, FolderIsOneRuns) {
  {
    const FolderLock mine(temporary_.str() + "/run");
    expect_error([&] { FolderLock(temporary_.str() + "/run"); },
                 {"process " + std::to_string(::getpid()) + " on "});
  }
  FolderLock again(temporary_.str() + "/run");
  const FolderLock moved(std::move(again));
  expect_error([&] { FolderLock(temporary_.str() + "/run"); }, {"in use"});
  fs::create_symlink(temporary_.path() / "x", temporary_.path() / "lock");
  expect_error([&] { FolderLock(temporary_.str()); }, {"can't write"});
}

}  // namespace
}  // namespace antichain
