// The doctor makes the right finding for each fact. It gives advice where something can be done, and none
// elsewhere.
#include "app/doctor/doctor.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace antichain {
namespace {

constexpr int64_t GiB = int64_t(1) << 30;

// This job has two hosts of two ranks, and all is well.
JobFacts healthy() {
  JobFacts job{.link = {.bytes_per_s = 5e9, .latency_s = 2e-6},
               .clock_offset_s = {0, 1e-6, 2e-4, -1e-4},
               .folder = "run1",
               .folder_bytes_per_s = 500e6};
  for (int r = 0; r < 4; ++r)
    job.ranks.push_back({.host = r < 2 ? "a" : "b",
                         .version = "1.0",
                         .mpi = "Open MPI v4.1.4",
                         .device = "cpu",
                         .locale = "C",
                         .engines = {{.missing = "no module"}},
                         .cores = {r % 2},
                         .host_cores = 2,
                         .memory_bytes = 8 * GiB,
                         .shared_bytes = GiB,
                         .folder_free_bytes = 100 * GiB});
  return job;
}

const Finding& about(const std::vector<Finding>& findings, const std::string& what) {
  for (const Finding& f : findings)
    if (f.about == what) return f;
  static const Finding none;
  return none;
}

TEST(Doctor, FindsNothingWhereAllIsWell) {
  const std::vector<Finding> findings = diagnose(healthy());
  EXPECT_EQ(worst(findings), Health::ok);
  for (const Finding& f : findings) {
    EXPECT_EQ(f.health, Health::ok) << f.about << ": " << f.what;
    EXPECT_EQ(f.advice, "") << f.about;
  }
  EXPECT_EQ(describe(findings).find("Advice"), std::string::npos);
}

TEST(Doctor, SaysWhetherAPlannedStepFits) {
  JobFacts job = healthy();
  EXPECT_EQ(describe_memory(job), "");
  job.memory.assign(4, {.kept = 3 * GiB});
  EXPECT_EQ(about(diagnose(job), "plan").health, Health::ok);
  EXPECT_NE(describe_memory(job).find("3072.00"), std::string::npos) << describe_memory(job);
  job.memory[3].messages = 3 * GiB;
  const std::vector<Finding> findings = diagnose(job);
  EXPECT_EQ(about(findings, "plan").health, Health::problem);
  EXPECT_NE(about(findings, "plan").what.find("9216 MiB on b, which has 8192 MiB left"), std::string::npos)
      << about(findings, "plan").what;
}

struct Trouble {
  const char* about;
  Health health;
  const char* part;  // of what is said
  std::function<void(JobFacts&)> make;
};

TEST(Doctor, FindsEachTrouble) {
  const Trouble troubles[] = {
      {"ranks", Health::warning, "3 on a", [](JobFacts& j) { j.ranks[2].host = "a"; }},
      {"version", Health::problem, "rank 3 has 0.9", [](JobFacts& j) { j.ranks[3].version = "0.9"; }},
      {"version", Health::problem, "rank 0 has 0.9", [](JobFacts& j) { j.ranks[0].version = "0.9"; }},
      {"MPI", Health::problem, "ranks 1, 2 have MPICH",
       [](JobFacts& j) {
         j.ranks[1].mpi = j.ranks[2].mpi = "MPICH";
         j.ranks.push_back(j.ranks[0]);
       }},
      {"device", Health::warning, "rank 1 has old", [](JobFacts& j) { j.ranks[1].device = "old"; }},
      {"CUDA", Health::warning, "the GPU of a can't be used: no module",
       [](JobFacts& j) { j.ranks[0].engines[0].present = 1; }},
      {"binding", Health::problem, "has 2 threads but is bound to 1 core",
       [](JobFacts& j) { j.ranks[1].threads = 2; }},
      {"binding", Health::warning, "2 threads share 1 core on b",
       [](JobFacts& j) { j.ranks[2].cores = j.ranks[3].cores; }},
      {"binding", Health::warning, "overlapping",
       [](JobFacts& j) {
         j.ranks[0].cores = {0, 1};
         j.ranks[1].cores = {1, 2};
       }},
      {"cores", Health::warning, "load 10.2 on the 2 cores of b",
       [](JobFacts& j) { j.ranks[3].load = 10.2; }},
      {"cores", Health::warning, "rank 1 on a had no core for 45.0 %",
       [](JobFacts& j) { j.ranks[1].starved_share = 0.45; }},
      {"memory", Health::warning, "256 MiB",
       [](JobFacts& j) { j.ranks[3].memory_bytes = j.ranks[2].memory_bytes = GiB / 2; }},
      {"limits", Health::warning, "/dev/shm on b", [](JobFacts& j) { j.ranks[3].shared_bytes = 1 << 20; }},
      {"limits", Health::warning, "lockable memory 0 MiB",
       [](JobFacts& j) { j.ranks[0].locked_bytes = 65536; }},
      {"link", Health::warning, "0.01 GB/s", [](JobFacts& j) { j.link.bytes_per_s = 1e7; }},
      {"link", Health::warning, "5000.0 us", [](JobFacts& j) { j.link.latency_s = 5e-3; }},
      {"clocks", Health::warning, "(rank 3)", [](JobFacts& j) { j.clock_offset_s[3] = -90; }},
      {"checkpoints", Health::problem, "rank 2 on b can't write to run1: gone",
       [](JobFacts& j) { j.ranks[2].folder = "gone"; }},
      {"checkpoints", Health::problem, "0 MB/s", [](JobFacts& j) { j.folder_bytes_per_s = 0; }},
      {"checkpoints", Health::warning, "10 MiB free",
       [](JobFacts& j) { j.ranks[1].folder_free_bytes = 10 << 20; }},
      {"checkpoints", Health::warning, "5 MB/s", [](JobFacts& j) { j.folder_bytes_per_s = 5e6; }},
      {"data", Health::warning, "would download it",
       [](JobFacts& j) { j.data_missing = "would download it"; }},
      {"data", Health::problem, "truncated", [](JobFacts& j) { j.data_problem = "truncated"; }}};
  for (const Trouble& trouble : troubles) {
    JobFacts job = healthy();
    trouble.make(job);
    const std::vector<Finding> findings = diagnose(job);
    const Finding& finding = about(findings, trouble.about);
    EXPECT_EQ(finding.health, trouble.health) << trouble.about << ": " << finding.what;
    EXPECT_NE(finding.what.find(trouble.part), std::string::npos) << finding.what;
    EXPECT_NE(finding.advice, "") << finding.what;
    EXPECT_GE(worst(findings), trouble.health);
  }
}

// Their share of the cores is the binding's matter.
TEST(Doctor, TheJobsOwnThreadsAreNotTakenForOthers) {
  JobFacts job = healthy();
  job.ranks[2].cores = job.ranks[3].cores;
  job.ranks[2].starved_share = job.ranks[3].starved_share = 0.5;
  EXPECT_EQ(about(diagnose(job), "cores").health, Health::ok);
}

TEST(Doctor, FactsTravelAsText) {
  RankFacts facts = healthy().ranks[1];
  facts.folder = "a \"quoted\" reason,\nof two lines";
  const RankFacts there = facts_from_text(to_text(facts));
  EXPECT_EQ(to_text(there), to_text(facts));
  EXPECT_EQ(there.folder, facts.folder);
  EXPECT_EQ(there.cores, facts.cores);
}

TEST(Doctor, WritesWhatItPrints) {
  JobFacts job = healthy();
  job.ranks[3].version = "0.9";
  const nlohmann::json json = nlohmann::json::parse(to_json(diagnose(job)));
  EXPECT_EQ(json["health"], "problem");
  EXPECT_EQ(json["findings"].size(), diagnose(job).size());
}

}  // namespace
}  // namespace antichain
