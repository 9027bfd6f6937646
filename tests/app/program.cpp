#include "tests/app/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace antichain {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

// The environment's own data folder would take the place of what a test gives; the cache is that of the
// tests, also where ctest does not start them (tests/CMakeLists.txt).
ProgramRun run_behind(const std::string& folder, const std::string& launcher, const std::string& words) {
  const std::string command = fmt::format(
      "cd '{}' && CIFAR10_DIR= XDG_CACHE_HOME='{}' ANTICHAIN_PROFILE_CACHE=none "
      "ANTICHAIN_PROFILE_SECONDS=0.1 timeout 240 {} '{}' {} >stdout.txt 2>stderr.txt </dev/null",
      folder, ANTICHAIN_TEST_CACHE, launcher, ANTICHAIN_PROGRAM, words);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = text_of(folder + "/stdout.txt"),
          .err = text_of(folder + "/stderr.txt")};
}

std::vector<std::string> ProgramRun::sentences() const {
  std::vector<std::string> lines;
  std::istringstream in(err);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("antichain: ") && line.find("times are doubtful") == std::string::npos)
      lines.push_back(line);
  return lines;
}

ProgramRun run_program(const std::string& folder, const std::string& words) {
  return run_behind(folder, "", words);
}

std::string mpi_launcher(int ranks, const std::string& environment) {
  return fmt::format(
      "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} '{}' --oversubscribe -n {}",
      environment, ANTICHAIN_MPIEXEC, ranks);
}

ProgramRun run_under_mpi(const std::string& folder, int ranks, const std::string& words) {
  return run_behind(folder, mpi_launcher(ranks), words);
}

void expect_refused(const ProgramRun& result, int code, const std::string& part, const std::string& words) {
  EXPECT_EQ(result.code, code) << words << "\n" << result.err;
  const std::vector<std::string> sentences = result.sentences();
  ASSERT_EQ(sentences.size(), 1u) << words << "\n" << result.err;
  EXPECT_THAT(sentences[0], ::testing::HasSubstr(part)) << words;
}

std::string ProgramTest::ran(const std::string& words) const {
  const ProgramRun result = run(words);
  EXPECT_EQ(result.code, 0) << words << ": " << result.err;
  return result.out;
}
void ProgramTest::expect_refused(const std::string& words, int code, const std::string& part) const {
  antichain::expect_refused(run(words), code, part, words);
}
ProgramTest::Json ProgramTest::json(const std::string& name) const {
  return Json::parse(text_of(path(name)));
}

}  // namespace antichain
