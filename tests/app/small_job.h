// A SmallJob is a folder with all that training needs: images, a profile and a plan. Tests start the program
// in it. It is made once for all tests of a process, because measuring the profile takes a second.
//
//   data/        48 images of training and 23 of testing, so the last batch of testing is uneven
//   p.json       a profile of ResNet-20 for batches of 16 images in 4 micro-batches
//   plan.json    a plan of 2 stages; moved.json differs from it in one node, which moves to the next stage
//   cyclic.json, empty.json, other.json, malformed.json, twice.json      plans that can't be used
//   label/, truncated/, nothing/                                         data that can't be used
#pragma once

#include "tests/app/program.h"

namespace antichain {

const std::string& folder_of_small_job();

class SmallJob : public ::testing::Test {
 protected:
  using Json = nlohmann::ordered_json;

  // These options of commands have a blank at both ends.
  static constexpr const char* network = " --model resnet20 --batch 16 --microbatches 4 ";
  static constexpr const char* given =
      " --model resnet20 --batch 16 --microbatches 4 --data-dir data --profile p.json ";

  static std::string path(const std::string& name);
  static Json read_json(const std::string& name);
  static std::vector<Json> read_lines(const std::string& name);  // each is JSON
  static ProgramRun run(const std::string& words);
  static std::string ran(const std::string& words);  // has to succeed; returns its standard output
  static ProgramRun run_mpi(int ranks, const std::string& words);
  // Starts the program alone, so its sentence is the only line on standard error.
  static ProgramRun expect_refused(const std::string& words, int code, const std::string& part);
};

// Each test has a folder of its own, with the job's data and profile.
class InACopyOfTheJob : public ProgramTest {
 protected:
  void SetUp() override;
};

}  // namespace antichain
