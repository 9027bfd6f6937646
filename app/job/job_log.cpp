#include "app/job/job_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "framework/backend.h"
#include "framework/version.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/mpi_transport.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns "job 4711 (train), start 2", or "".
std::string slurm_job() {
  const std::string number = variable("SLURM_JOB_ID"), restarts = variable("SLURM_RESTART_COUNT");
  if (number.empty()) return "";
  return fmt::format("job {} ({}), start {}", number, variable("SLURM_JOB_NAME"),
                     1 + std::atoi(restarts.c_str()));
}

std::vector<std::string> own_command() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?[]{}#~`!") == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[40] = "";
  std::strftime(text, sizeof text, "%F %T UTC", gmtime_r(&now, &parts));
  return text;
}

}  // namespace

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

Json provenance() {
  return {{"program", fmt::format("antichain {}", version())},
          {"revision", revision()},
          {"libraries", {backend("cpu").description(), mpi_library()}}};
}

std::string log_line(const std::string& head, const std::string& text) { return hanging(head, 10, text); }

std::string hosts_in_short(const std::vector<std::string>& host_of_rank) {
  std::vector<std::string> hosts;
  for (size_t first = 0, next = 0; first < host_of_rank.size(); first = next) {
    while (next < host_of_rank.size() && host_of_rank[next] == host_of_rank[first]) ++next;
    hosts.push_back(next == first + 1 ? fmt::format("{}: rank {}", host_of_rank[first], first)
                                      : fmt::format("{}: ranks {}-{}", host_of_rank[first], first, next - 1));
  }
  return fmt::format("{}", fmt::join(hosts, ", "));
}

JobStart job_start(const Rank& rank) {
  JobStart facts{.command = own_command(),
                 .threads = rank.context.threads(),
                 .device = rank.context.backend().description(),
                 .started = now_in_utc()};
  for (const std::string& text : rank.job.gather(fmt::format("{} {}", available_cores(), rank.job.host()))) {
    const size_t blank = text.find(' ');
    facts.cores.push_back(std::atoi(text.c_str()));
    facts.hosts.push_back(text.substr(blank + 1));
  }
  facts.gpus = job_gpus(rank);
  return facts;
}

std::string describe(const JobStart& facts) {
  std::vector<std::string> cores;
  for (size_t r = 0; r < facts.cores.size(); ++r)
    if (r == 0 || facts.cores[r] != facts.cores[r - 1]) cores.push_back(std::to_string(facts.cores[r]));
  std::string text = log_line("Program", fmt::format("antichain {} (revision {}), {}, {}", version(),
                                                     revision(), facts.device, mpi_library()));
  text += log_line("Command", shell_words(facts.command));
  text += log_line("Hosts", fmt::format("{}; {} a rank on {} core{}", hosts_in_short(facts.hosts),
                                        counted(facts.threads, "thread"), fmt::join(cores, ", "),
                                        cores == std::vector<std::string>{"1"} ? "" : "s"));
  if (!facts.gpus.empty()) text += log_line("GPUs", describe(facts.gpus));
  text += log_line("Started", facts.started);
  if (const std::string job = slurm_job(); !job.empty()) text += log_line("Slurm", job);
  return text;
}

Json to_json(const JobStart& facts) {
  Json json = {{"started", facts.started}, {"command", facts.command}};
  json.update(provenance());
  json["device"] = facts.device;
  json["threads"] = facts.threads;
  for (size_t r = 0; r < facts.hosts.size(); ++r)
    json["ranks"].push_back({{"host", facts.hosts[r]}, {"cores", facts.cores[r]}});
  for (size_t r = 0; r < facts.gpus.size(); ++r)
    json["ranks"][r]["gpu"] = facts.gpus[r].gpu, json["ranks"][r]["gpus_visible"] = facts.gpus[r].visible;
  if (const std::string job = slurm_job(); !job.empty()) json["slurm"] = job;
  return json;
}

}  // namespace antichain
