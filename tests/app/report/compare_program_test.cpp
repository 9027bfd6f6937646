// These tests run antichain compare as a user does: on runs that are equal, on runs that are not, on
// profiles, and on plans.
#include <gmock/gmock.h>

#include <filesystem>

#include "framework/json.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CompareProgram : public ProgramTest {
 protected:
  // Writes what train --results leaves of two steps.
  void write_run(const std::string& name, const std::string& settings, double second_loss,
                 const std::string& state) const {
    std::filesystem::create_directory(path(name));
    write_file(path(name + "/run.json"), R"({"model": "m", "settings": )" + settings +
                                             R"(, "starts": [{"revision": "r", "plan_hash": "p"}]})");
    write_file(path(name + "/metrics.jsonl"), R"({"step":1,"loss":2.5})"
                                              "\n" +
                                                  nlohmann::json{{"step", 2}, {"loss", second_loss}}.dump() +
                                                  "\n{\"step\":3,\"lo");
    if (!state.empty())
      write_file(path(name + "/summary.json"),
                 R"({"state": ")" + state + R"(", "final_loss": 2.25, "measured_step_s": 0.5})");
  }
};

TEST_F(CompareProgram, RunsWithEqualNumbersAreEqualWhateverTheirSettings) {
  write_run("one", R"({"local": 1, "lr": 0.1, "results": "one"})", 2.25, "abc");
  write_run("two", R"({"local": 2, "lr": 0.1, "results": "two"})", 2.25, "abc");
  const std::string result = ran("compare one two --json c.json");
  EXPECT_THAT(result, HasSubstr("local                 1  2"));
  EXPECT_THAT(result, HasSubstr("Equal: the losses of all 2 steps are equal, and so is the state"));
  EXPECT_THAT(result, Not(HasSubstr("lr "))) << "it does not differ";
  const nlohmann::json json = nlohmann::json::parse(read_file(path("c.json")));
  EXPECT_EQ(json["equal"], true);
  EXPECT_EQ(json["settings_that_differ"].size(), 1u) << "where results went changes no number";
  EXPECT_EQ(json["settings_that_differ"]["local"]["b"], "2");
}

TEST_F(CompareProgram, TheFirstStepThatDiffersIsNamed) {
  write_run("one", "{}", 2.25, "abc");
  write_run("two", "{}", 2.5, "abd");
  write_run("state", "{}", 2.25, "abd");
  write_run("running", "{}", 2.25, "");
  const ProgramRun result = run("compare one two");
  EXPECT_EQ(result.code, 7);
  EXPECT_THAT(result.err, HasSubstr("the losses differ from step 2 on, by at most 0.25 in 2 steps"));
  EXPECT_THAT(result.out, HasSubstr("Settings: none differ"));
  EXPECT_THAT(run("compare one state").err, HasSubstr("but the states at the end are not"));
  EXPECT_THAT(run("compare one running").err, HasSubstr("one of the runs has not ended"));
}

TEST_F(CompareProgram, ProfilesAndPlansAreComparedAsWell) {
  const std::string shipped = std::string(ANTICHAIN_SOURCE_DIR) + "/docs/profiles/cpu/alexnet.json";
  write_file(path("a.json"), read_file(shipped));
  ran("compare a.json a.json");
  ran("plan --profile a.json --stages 2 --json two.json");
  ran("plan --profile a.json --stages 3 --json three.json");
  ran("compare two.json two.json");
  const ProgramRun plans = run("compare two.json three.json");
  EXPECT_EQ(plans.code, 7);
  EXPECT_THAT(plans.out, HasSubstr("nodes of the stages"));
  expect_refused("compare two.json a.json", 2, "are not of one kind: one is a plan");
  expect_refused("compare two.json .", 2, "one is a folder");
  std::filesystem::create_directory(path("empty"));
  expect_refused("compare empty empty", 3, "empty holds no run");
  expect_refused("compare two.json", 2, "B");
  EXPECT_THAT(run("compare --help").out, HasSubstr("Usage: antichain compare A B [OPTIONS]"));
}

}  // namespace
}  // namespace antichain
