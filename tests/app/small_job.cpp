#include "tests/app/small_job.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "framework/json.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

void make_plans(const std::string& folder) {
  const auto write = [&](const char* name, const Json& plan) {
    write_file(folder + "/" + name, plan.dump(1));
  };
  const Json plan = Json::parse(read_file(folder + "/plan.json"));
  Json moved = plan, cyclic = plan, empty = plan, other = plan;
  Json& first = moved["stages"][0]["nodes"];
  moved["stages"][1]["nodes"].push_back(first.back());
  first.erase(first.size() - 1);
  write("moved.json", moved);
  cyclic["stages"][0]["nodes"].swap(cyclic["stages"][1]["nodes"]);
  write("cyclic.json", cyclic);
  empty["stages"] = Json::array();
  write("empty.json", empty);
  other["model"] = "vgg16";
  write("other.json", other);
  write_file(folder + "/malformed.json", "{\n  \"format\": \"x\",,\n}\n");
  write_file(folder + "/twice.json", "{\"model\": \"a\", \"model\": \"b\"}");
}

void make_data(const fs::path& folder) {
  std::vector<uint8_t> bytes = records(48);
  write_bytes(folder / "data/data_batch_1.bin", bytes);
  write_bytes(folder / "data/test_batch.bin", records(23));
  bytes[3073 * 5] = 10;  // the first byte of record 5 is its label
  write_bytes(folder / "label/data_batch_1.bin", bytes);
  bytes.resize(5000);
  write_bytes(folder / "truncated/data_batch_1.bin", bytes);
  fs::create_directory(folder / "nothing");
}

}  // namespace

const std::string& folder_of_small_job() {
  static const TemporaryFolder folder;
  static const std::string name = [] {
    make_data(folder.path());
    for (const char* words : {"profile --model resnet20 --batch 16 --microbatches 4 --local 2 --json p.json",
                              "plan --profile p.json --stages 2 --json plan.json"})
      if (const ProgramRun made = run_program(folder.str(), words); made.code != 0)
        throw std::runtime_error(std::string("antichain ") + words + ": " + made.err);
    make_plans(folder.str());
    return folder.str();
  }();
  return name;
}

std::string SmallJob::path(const std::string& name) { return folder_of_small_job() + "/" + name; }

SmallJob::Json SmallJob::read_json(const std::string& name) { return Json::parse(read_file(path(name))); }

std::vector<SmallJob::Json> SmallJob::read_lines(const std::string& name) {
  std::vector<Json> lines;
  std::istringstream in(read_file(path(name)));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

ProgramRun SmallJob::run(const std::string& words) { return run_program(folder_of_small_job(), words); }

std::string SmallJob::ran(const std::string& words) {
  const ProgramRun result = run(words);
  EXPECT_EQ(result.code, 0) << words << ": " << result.err;
  return result.out;
}

ProgramRun SmallJob::run_mpi(int ranks, const std::string& words) {
  return run_under_mpi(folder_of_small_job(), ranks, words);
}

ProgramRun SmallJob::expect_refused(const std::string& words, int code, const std::string& part) {
  const ProgramRun result = run(words);
  antichain::expect_refused(result, code, part, words);
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  return result;
}

void InACopyOfTheJob::SetUp() {
  for (const std::string name : {"data", "p.json"}) fs::copy(folder_of_small_job() + "/" + name, path(name));
}

}  // namespace antichain
