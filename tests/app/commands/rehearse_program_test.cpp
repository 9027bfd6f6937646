// These tests run rehearsals as a user does, on a network of a few nodes.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "framework/json.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A chain of six nodes after an input; forward and backward of node i take i ms and 2 i ms, activations have
// 1 MiB.
std::string chain_txt() {
  std::string text =
      "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, "
      "activation_size=1048576.000, "
      "parameter_size=0.000\n";
  for (int i = 2; i <= 7; ++i) {
    const std::string ms = std::to_string(i);
    text += "node" + ms +
            " -- Linear(in_features=8, out_features=8, bias=True) -- forward_compute_time=" + ms +
            ".000, backward_compute_time=" + std::to_string(2 * i) +
            ".000, activation_size=1048576.000, parameter_size=4194304.000\n";
  }
  for (int i = 1; i <= 6; ++i)
    text += "\tnode" + std::to_string(i) + " -- node" + std::to_string(i + 1) + "\n";
  return text;
}

class RehearseProgram : public ProgramTest {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.path() / "profiles");
    write_file(path("profiles/one.txt"), chain_txt());
  }
};

TEST_F(RehearseProgram, RehearsesOnAsManyThreadsAsThePlanHasRanks) {
  const std::string result =
      ran("rehearse --profile profiles/one.txt --stages 3 --microbatches 4 --steps 2 --json r.json --trace "
          "t.json");
  EXPECT_THAT(result, HasSubstr("REHEARSED on 3 ranks"));
  EXPECT_THAT(result, HasSubstr("predicted  rehearsed"));
  const nlohmann::json r = json("r.json");
  EXPECT_EQ(r["mode"], "rehearsed");
  EXPECT_EQ(r["ranks"], 3);
  EXPECT_EQ(r["rehearsed_steps_s"].size(), 2u);
  EXPECT_GE(r["rehearsed_step_s"].get<double>(), r["predicted_step_s"].get<double>() - 1e-6)
      << "waits end late, never early";
  EXPECT_THAT(read_file(path("t.json")), HasSubstr("rehearsed: one"));
}

TEST_F(RehearseProgram, TrainOnARehearsedDeviceIsARehearsal) {
  const std::string result = ran("train --device rehearse:profiles/one.txt --local 2 --microbatches 4");
  EXPECT_THAT(result, HasSubstr("REHEARSED on 2 ranks"));
  const std::string same = "train --device rehearse:profiles/one.txt --local 2 --microbatches 4 ";
  ran(same + "--json kept.json");
  EXPECT_EQ(json("kept.json")["mode"], "rehearsed");
  for (const std::string option : {"--results", "--metrics", "--checkpoint", "--resume"})
    expect_refused(same + option + " x", 2, option + " x is given, but a rehearsal trains nothing");
  expect_refused(same + "--trace profiles/one.txt", 2,
                 "profiles/one.txt is there already and would be replaced");
  expect_refused("train --device rehearse: --local 2", 2, "names no profile");
  expect_refused("train --device rehearsal --local 2", 2, "there is no device 'rehearsal'");
}

TEST_F(RehearseProgram, RehearsalsNeedTheirRanks) {
  ran("plan --profile profiles/one.txt --stages 2 --json plan.json");
  expect_refused("rehearse --profile profiles/one.txt --plan plan.json --local 3", 2, "for 2 ranks, but 3");
}

TEST_F(RehearseProgram, RehearsesUnderMpi) {
  const ProgramRun result = run_under_mpi(
      folder_.str(), 3, "rehearse --profile profiles/one.txt --microbatches 4 --payload true --json r.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("REHEARSED on 3 ranks"));
  EXPECT_EQ(json("r.json")["payload"], "true");
}

TEST_F(RehearseProgram, ARankThatHangsInARehearsalIsNamed) {
  ::setenv("ANTICHAIN_FAULT", "hang:rank=1:step=1", 1);
  const ProgramRun result =
      run("rehearse --profile profiles/one.txt --stages 3 --microbatches 4 --watchdog 1");
  ::unsetenv("ANTICHAIN_FAULT");
  EXPECT_EQ(result.code, 75) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
}

}  // namespace
}  // namespace antichain
