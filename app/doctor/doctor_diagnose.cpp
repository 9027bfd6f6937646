// The judging half of `antichain doctor` makes findings, each with a sentence of advice, from the facts
// alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/doctor/doctor.h"
#include "app/job/memory_table.h"
#include "framework/module.h"
#include "pipeline/host/core_time.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

constexpr int64_t MiB = 1 << 20;
constexpr double slow_link_bytes_per_s = 100e6, slow_link_s = 1e-3, slow_disk_bytes_per_s = 20e6;
constexpr int64_t little_disk = 1024 * MiB, little_shared = 64 * MiB, little_memory = 1024 * MiB;
constexpr double clocks_apart_s = 1;  // schedulers and checkpoints compare times of whole seconds

std::map<std::string, std::vector<const RankFacts*>> by_host(const JobFacts& job) {
  std::map<std::string, std::vector<const RankFacts*>> hosts;
  for (const RankFacts& rank : job.ranks) hosts[rank.host].push_back(&rank);
  return hosts;
}

// Finds a fact that should be the same on every rank, and names the ranks where it differs.
template <class Field>
Finding sameness(const JobFacts& job, const std::string& about, const Field& field, Health otherwise,
                 const std::string& advice) {
  std::vector<std::string> values;
  for (const RankFacts& rank : job.ranks) values.push_back(std::invoke(field, rank));
  const std::string odd = describe_odd(values, "has", "have");
  return odd.empty() ? Finding{Health::ok, about, values[0], ""} : Finding{otherwise, about, odd, advice};
}

Finding ranks(const JobFacts& job) {
  std::vector<std::string> parts;
  std::set<size_t> counts;
  for (const auto& [host, there] : by_host(job)) {
    parts.push_back(fmt::format("{} on {}", there.size(), host));
    counts.insert(there.size());
  }
  const std::string what =
      fmt::format("{}: {}", counted(int64_t(job.ranks.size()), "rank"), fmt::join(parts, ", "));
  if (counts.size() == 1) return {Health::ok, "ranks", what, ""};
  return {
      Health::warning, "ranks", what,
      "hosts have unequally many ranks: start as many on each (--ntasks-per-node, or --map-by ppr:N:node)"};
}

Finding binding(const JobFacts& job) {
  for (const auto& [host, there] : by_host(job)) {
    std::set<int> cores;
    size_t bound = 0;
    int threads = 0;
    for (const RankFacts* rank : there) {
      cores.insert(rank->cores.begin(), rank->cores.end());
      bound += rank->cores.size();
      threads += rank->threads;
      if (rank->threads > int(rank->cores.size()))
        return {Health::problem, "binding",
                fmt::format("a rank on {} has {} threads but is bound to {}", host, rank->threads,
                            counted(int64_t(rank->cores.size()), "core")),
                "give each rank as many cores as threads (--cpus-per-task, or --map-by slot:PE=N), or lower "
                "--threads"};
    }
    if (threads > int(cores.size()))
      return {Health::warning, "binding",
              fmt::format("{} threads share {} on {}", threads, counted(int64_t(cores.size()), "core"), host),
              "start fewer ranks there: results are the same, speed is not"};
    const bool free = bound == cores.size() * there.size();  // every rank may run on every core
    if (bound > cores.size() && !free)
      return {Health::warning, "binding", "ranks on " + host + " are bound to overlapping cores",
              "bind each rank to cores of its own (--cpu-bind=cores, or --bind-to core)"};
  }
  const RankFacts& first = job.ranks[0];
  return {Health::ok, "binding",
          fmt::format("{} for {} a rank", counted(int64_t(first.cores.size()), "core"),
                      counted(first.threads, "thread")),
          ""};
}

// Others use the cores where a rank had to wait for one, or where more threads than cores were ready. A rank
// that lacks a core because of the job's own threads is what binding() tells of.
Finding cores(const JobFacts& job) {
  const std::string advice =
      "end what else runs there, or ask for cores of your own: results are the same, speed is not, and the "
      "times that plans are made from are doubtful";
  const RankFacts* busiest = &job.ranks[0];
  for (const RankFacts& rank : job.ranks)
    if (rank.load / rank.host_cores > busiest->load / busiest->host_cores) busiest = &rank;
  const std::string load = fmt::format("load {:.1f} on the {} of {}", busiest->load,
                                       counted(busiest->host_cores, "core"), busiest->host);
  if (binding(job).health == Health::ok)
    for (size_t r = 0; r < job.ranks.size(); ++r)
      if (job.ranks[r].starved_share >= doubtful_starved_share)
        return {Health::warning, "cores",
                fmt::format("rank {} on {} had no core for {} % of a short computation; {}", r,
                            job.ranks[r].host, percent(job.ranks[r].starved_share), load),
                advice};
  if (busiest->load > busiest->host_cores)
    return {Health::warning, "cores", load + " in the last minute", advice};
  return {Health::ok, "cores", load, ""};
}

// Ranks of one host share its memory.
Finding planned_memory(const JobFacts& job) {
  std::map<std::string, std::pair<int64_t, int64_t>> hosts;  // needed, and available
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    const auto [place, fresh] = hosts.try_emplace(job.ranks[r].host, 0, job.ranks[r].memory_bytes);
    place->second.first += job.memory[r].bytes();
  }
  std::string what;
  for (const auto& [host, bytes] : hosts) {
    const auto& [needed, left] = bytes;
    what = fmt::format("a step of the plan takes {} MiB on {}, which has {} MiB left", needed / MiB, host,
                       left / MiB);
    if (needed > left)
      return {Health::problem, "plan", what,
              "plan with --memory-bytes, more --microbatches, or fewer ranks on a host"};
  }
  return {Health::ok, "plan", what, ""};
}

Finding memory(const JobFacts& job) {
  int64_t least = job.ranks[0].memory_bytes;
  std::string where = job.ranks[0].host;
  for (const auto& [host, there] : by_host(job)) {
    const int64_t share = there[0]->memory_bytes / int64_t(there.size());
    if (share <= least) least = share, where = host;
  }
  const std::string what = fmt::format("{} MiB available for each rank on {}", least / MiB, where);
  if (least >= little_memory) return {Health::ok, "memory", what, ""};
  return {Health::warning, "memory", what, "ask for more memory (--mem), or start fewer ranks on a host"};
}

Finding limits(const JobFacts& job) {
  for (const RankFacts& rank : job.ranks) {
    if (rank.shared_bytes < little_shared)
      return {
          Health::warning, "limits",
          fmt::format("/dev/shm on {} has {} MiB left", rank.host, rank.shared_bytes / MiB),
          "MPI's messages within a host go through it: make it larger (docker --shm-size=1g), or empty it"};
  }
  const RankFacts& first = job.ranks[0];
  const std::string locked =
      first.locked_bytes < 0 ? "unlimited" : fmt::format("{} MiB", first.locked_bytes / MiB);
  const std::string what =
      fmt::format("/dev/shm {} MiB free, lockable memory {}", first.shared_bytes / MiB, locked);
  const bool several = by_host(job).size() > 1;
  if (!several || first.locked_bytes < 0 || first.locked_bytes >= little_shared)
    return {Health::ok, "limits", what, ""};
  return {Health::warning, "limits", what, "InfiniBand wants ulimit -l unlimited: ask the administrator"};
}

Finding link(const JobFacts& job) {
  const std::string what = fmt::format("slowest neighbours: {:.1f} us, {:.2f} GB/s{}",
                                       job.link.latency_s * 1e6, job.link.bytes_per_s * 1e-9,
                                       job.link_way.empty() ? "" : fmt::format(" ({})", job.link_way));
  if (job.link.latency_s < slow_link_s && job.link.bytes_per_s > slow_link_bytes_per_s)
    return {Health::ok, "link", what, ""};
  return {Health::warning, "link", what,
          "check which network MPI uses (--mca btl_tcp_if_include, UCX_NET_DEVICES), and that ranks have "
          "cores of "
          "their own"};
}

Finding clocks(const JobFacts& job) {
  double most = 0;
  size_t who = 0;
  for (size_t r = 0; r < job.clock_offset_s.size(); ++r)
    if (std::abs(job.clock_offset_s[r]) > std::abs(most)) most = job.clock_offset_s[who = r];
  const std::string what = fmt::format("at most {:.6f} s apart (rank {})", std::abs(most), who);
  if (std::abs(most) < clocks_apart_s) return {Health::ok, "clocks", what, ""};
  return {Health::warning, "clocks", what, "synchronise the hosts' clocks (chrony, ntpd)"};
}

Finding disk(const JobFacts& job) {
  int64_t least = job.ranks[0].folder_free_bytes;
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    if (!job.ranks[r].folder.empty())
      return {Health::problem, "checkpoints",
              fmt::format("rank {} on {} can't write to {}: {}", r, job.ranks[r].host, job.folder,
                          job.ranks[r].folder),
              "name a folder that exists on every host and takes files"};
    least = std::min(least, job.ranks[r].folder_free_bytes);
  }
  const std::string what = fmt::format("{}: {} MiB free, {:.0f} MB/s written and synced", job.folder,
                                       least / MiB, job.folder_bytes_per_s * 1e-6);
  if (job.folder_bytes_per_s == 0)
    return {Health::problem, "checkpoints", what, "the folder took no 32 MiB: free some space"};
  if (least < little_disk)
    return {Health::warning, "checkpoints", what, "free some space, or keep fewer (--keep)"};
  if (job.folder_bytes_per_s < slow_disk_bytes_per_s)
    return {Health::warning, "checkpoints", what, "use a faster disk, or save less often"};
  return {Health::ok, "checkpoints", what, ""};
}

Finding shared(const JobFacts& job) {
  if (job.not_shared.empty()) return {Health::ok, "shared folder", "all ranks see what the others write", ""};
  return {Health::problem, "shared folder", job.not_shared,
          "name a folder for checkpoints on a file system that all hosts share"};
}

Finding checkpoints(const JobFacts& job) {
  const std::string count = counted(job.checkpoints, "checkpoint");
  if (job.damaged.empty()) return {Health::ok, "saved runs", "the newest of " + count + " is whole", ""};
  if (job.whole.empty())
    return {Health::problem, "saved runs",
            fmt::format("no checkpoint in {} can be used: {}", job.folder, job.damaged),
            "start anew in another folder"};
  return {Health::warning, "saved runs", job.damaged, "--resume goes on from the older " + job.whole};
}

Finding locale(const JobFacts& job) {
  return {Health::ok, "locale", job.ranks[0].locale + "; files and options always have a decimal point", ""};
}

std::string mark(Health health) {
  constexpr const char* marks[] = {"ok", "warning", "problem"};
  return marks[size_t(health)];
}
constexpr size_t mark_width = 7;

Style style(Health health) {
  constexpr Style styles[] = {Style::good, Style::doubtful, Style::bad};
  return styles[size_t(health)];
}

// A rank that has the hardware and can't use it is worth a warning; a host without it is not.
Finding module_found(const JobFacts& job, size_t row) {
  const EngineModule& module = engine_modules()[row];
  Finding finding = sameness(
      job, module.title, [&](const RankFacts& rank) { return rank.engines[row].missing; }, Health::warning,
      "load the same modules on every host");
  if (finding.health != Health::ok) return finding;
  const EngineFacts& first = job.ranks[0].engines[row];
  if (first.missing.empty()) {
    finding.what = "the module is loaded";
  } else if (first.present == 0) {
    finding.what = fmt::format("no {}; {}", module.needs, first.missing);
  } else {
    finding.health = Health::warning;
    finding.what = fmt::format("the {}{} of {} can't be used: {}", module.needs,
                               first.present == 1 ? "" : "s", job.ranks[0].host, first.missing);
    finding.advice = "see docs/gpu.md, Building";
  }
  return finding;
}

}  // namespace

std::vector<Finding> diagnose(const JobFacts& job) {
  std::vector<Finding> all{
      ranks(job),
      sameness(job, "version", &RankFacts::version, Health::problem, "start the same program on every host"),
      sameness(job, "MPI", &RankFacts::mpi, Health::problem, "load the same MPI on every host"),
      sameness(
          job, "device", &RankFacts::device, Health::warning,
          "different processors round differently and wait for the slowest: use equal hosts, or name their "
          "speeds in --cluster; where their instructions differ, --cpu-isa makes them alike")};
  for (size_t row = 0; row < engine_modules().size(); ++row) all.push_back(module_found(job, row));
  if (job.ranks.size() > 1) {
    all.push_back({Health::ok, "threads",
                   job.threads_of_one_process ? "ranks are threads of one process" : "MPI_THREAD_MULTIPLE",
                   ""});
    all.push_back(link(job));
    all.push_back(clocks(job));
  }
  all.push_back(binding(job));
  all.push_back(cores(job));
  all.push_back(memory(job));
  if (!job.memory.empty()) all.push_back(planned_memory(job));
  all.push_back(limits(job));
  all.push_back(locale(job));
  if (!job.folder.empty()) all.push_back(disk(job));
  if (!job.folder.empty() && job.ranks.size() > 1) all.push_back(shared(job));
  if (job.checkpoints > 0) all.push_back(checkpoints(job));
  if (!job.data_problem.empty()) all.push_back({Health::problem, "data", job.data_problem, "see --data-dir"});
  if (!job.data_missing.empty())
    all.push_back({Health::warning, "data", job.data_missing, "give --data-dir, or set CIFAR10_DIR"});
  if (!job.data.empty()) all.push_back({Health::ok, "data", job.data, ""});
  return all;
}

Health worst(const std::vector<Finding>& findings) {
  Health health = Health::ok;
  for (const Finding& f : findings) health = std::max(health, f.health);
  return health;
}

std::string describe_memory(const JobFacts& job) {
  if (job.memory.empty()) return "";
  std::vector<MemoryRow> rows = memory_rows(job.memory);
  for (size_t r = 0; r < rows.size(); ++r) rows[r].host = job.ranks[r].host;
  return "\nMemory of a step\n" + memory_table(rows);
}

std::string describe(const std::vector<Finding>& findings) {
  size_t about = 0;
  for (const Finding& f : findings) about = std::max(about, f.about.size());
  const size_t indent = 2 + mark_width + 2 + about + 2;
  std::string text, advice;
  for (const Finding& f : findings) {
    const std::string blanks(mark_width - mark(f.health).size(), ' ');
    text += hanging(fmt::format("  {}{}  {}", styled(style(f.health), mark(f.health)), blanks, f.about),
                    indent, f.what);
    if (!f.advice.empty()) advice += hanging("  " + f.about, 15, f.advice);
  }
  return text + (advice.empty() ? "" : "\n" + styled(Style::heading, "Advice") + "\n" + advice);
}

std::string to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Finding& f : findings)
    all.push_back(
        {{"health", mark(f.health)}, {"about", f.about}, {"finding", f.what}, {"advice", f.advice}});
  return nlohmann::ordered_json{{"health", mark(worst(findings))}, {"findings", all}}.dump(2) + "\n";
}

}  // namespace antichain
