// A test runs the built program as a user does: it starts a process, and judges its exit code and what it
// prints.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/data/temporary_folder.h"

namespace antichain {

struct ProgramRun {
  int code = -1;  // 124: it took longer than a minute
  std::string out, err;
  // Returns the lines on stderr that are the program's own, but for what it says of a busy machine. mpirun
  // adds a notice of its own when a rank fails.
  std::vector<std::string> sentences() const;
};

// Words are parted by blanks; none may hold one. `folder` is where it runs and what relative names are
// relative to.
ProgramRun run_program(const std::string& folder, const std::string& words);
// `launcher` is what stands before the program's name in the shell's line.
ProgramRun run_behind(const std::string& folder, const std::string& launcher, const std::string& words);
// Such a launcher: mpirun, with these variables set as well.
std::string mpi_launcher(int ranks, const std::string& environment = "");
ProgramRun run_under_mpi(const std::string& folder, int ranks, const std::string& words);

// Expects that the run ended with the code, and with one sentence of the program's own that holds `part`.
void expect_refused(const ProgramRun&, int code, const std::string& part, const std::string& words);

// Each test has a folder of its own, in which it runs the program.
class ProgramTest : public ::testing::Test {
 protected:
  using Json = nlohmann::ordered_json;

  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  ProgramRun run(const std::string& words) const { return run_program(folder_.str(), words); }
  std::string ran(const std::string& words) const;  // has to succeed; returns its standard output
  void expect_refused(const std::string& words, int code, const std::string& part) const;
  Json json(const std::string& name) const;

  const TemporaryFolder folder_;
};

}  // namespace antichain
