// The program repeats in many places what files say. These tests put text into files that a terminal would
// obey, and check that none of it reaches the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "framework/files/folder_lock.h"
#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;

const std::string hostile = "\x1b[31mred\x1b]0;title\x07\u202e",
                  in_json = R"(\u001b[31mred\u001b]0;title\u0007\u202e)";

class HostileText : public SmallJob {
 protected:
  // Writes the file under another name, with the first `from` replaced.
  static void edit(const std::string& file, const std::string& from, const std::string& to,
                   const std::string& name) {
    std::string text = read_file(path(file));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(path(name), text.replace(at, from.size(), to));
  }
  // It is shown, escaped, and in no other way.
  static void expect_shown(const std::string& words, int code) {
    const ProgramRun result = run(words);
    EXPECT_EQ(result.code, code) << words << "\n" << result.err;
    const std::string all = result.out + result.err;
    EXPECT_TRUE(
        std::ranges::all_of(all, [](unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\n'; }))
        << words << "\n"
        << all;
    EXPECT_EQ(all.find("\u202e"), std::string::npos) << words << "\n" << all;
    EXPECT_THAT(all, HasSubstr("\\x1b[")) << words;
  }
};

TEST_F(HostileText, OfProfiles) {
  edit("p.json", "\"model\": \"resnet20\"", "\"model\": \"" + in_json + "\"", "e.json");
  expect_shown("plan --profile e.json --stages 2", 0);
  expect_shown("plan --profile e.json --stages 2 --compare", 0);
  edit("p.json", "\"name\": \"conv1", "\"name\": \"" + in_json + "conv1", "e.json");
  expect_shown("plan --profile e.json --stages 2", 0);
  edit("p.json", "\"role\": \"loss\"", "\"role\": \"" + in_json + "\"", "e.json");
  expect_shown("plan --profile e.json --stages 2", 3);
  edit("p.json", "\"format\": \"", "\"" + in_json + "\": 1, \"format\": \"", "e.json");
  expect_shown("plan --profile e.json --stages 2", 3);
  edit("p.json", "\"format\": \"", "\"format\": \"" + in_json, "e.json");
  expect_shown("plan --profile e.json --stages 2", 3);
}

TEST_F(HostileText, OfPlansClustersAndSchedules) {
  edit("plan.json", "\"method\": \"", "\"method\": \"" + in_json, "e.json");
  expect_shown("simulate --profile p.json --plan e.json", 0);
  edit("plan.json", "\"model\": \"", "\"model\": \"" + in_json, "e.json");
  expect_shown("simulate --profile p.json --plan e.json", 3);
  write_file(path("cluster.json"), "{\"format\": \"" + in_json + "\"}");
  expect_shown("plan --profile p.json --cluster cluster.json", 3);
  write_file(path("schedule.txt"), hostile + "\n");
  expect_shown("simulate --profile p.json --plan plan.json --schedule schedule.txt", 3);
}

TEST_F(HostileText, OfSettingsFiles) {
  write_file(path("c.toml"), "device = \"" + in_json + "\"\n");
  expect_shown("train --config c.toml", 2);
  write_file(path("c.toml"), "\"" + in_json + "\" = 1\n");
  expect_shown("train --config c.toml", 2);
  write_file(path("c.toml"), "[\"" + in_json + "\"]\n");
  expect_shown("train --config c.toml", 2);
}

TEST_F(HostileText, OfWeightFiles) {
  const auto write = [](const std::string& name, const std::string& dtype) {
    const std::string header =
        "{\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    std::string bytes(8, '\0');
    bytes[0] = char(header.size());
    write_file(path("w.safetensors"), bytes + header + std::string(4, '\0'));
  };
  write(in_json, "F32");
  expect_shown("export --model resnet20 --init w.safetensors --out x.h5", 3);
  write("conv1.weight", in_json);
  expect_shown("export --model resnet20 --init w.safetensors --out x.h5", 3);
}

TEST_F(HostileText, OfDataSets) {
  write_bytes(path("cifar/data_batch_1.bin"), records(4));
  write_bytes(path("cifar/test_batch.bin"), records(2));
  std::string names = hostile + "\n";
  for (int i = 1; i < 10; ++i) names += "name\n";
  write_file(path("cifar/batches.meta.txt"), names);
  expect_shown("data show cifar", 0);
  ran("data pack --cifar cifar --out set.h5");
  expect_shown("data show set.h5", 0);
  std::filesystem::create_directories(path("images/" + hostile));
  for (const char* name : {"a.png", "b.png"})
    write_file(path("images/" + hostile + "/" + hostile + name), "no image");
  expect_shown("data pack --images images --out y.h5", 3);
}

TEST_F(HostileText, OfLocks) {
  const FolderLock held(path("run"));
  std::ofstream(path("run/lock")) << hostile;
  expect_shown(
      "train --model resnet20 --batch 16 --microbatches 4 --dataset synthetic --profile p.json --steps 1 "
      "--checkpoint run",
      3);
}

}  // namespace
}  // namespace antichain
