// The measuring half of `antichain doctor` collects the facts.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/doctor/doctor.h"
#include "framework/backend.h"
#include "framework/module.h"
#include "framework/version.h"
#include "pipeline/host/core_time.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/link_probe.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/clock_offset.h"
#include "pipeline/transport/mpi_transport.h"

namespace antichain {
namespace {

constexpr int64_t probe_bytes = 32 << 20;  // large enough to measure a disk, small enough for a slow one

std::vector<int> bound_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

int64_t free_bytes(const char* folder) {
  struct statvfs info {};
  return ::statvfs(folder, &info) == 0 ? int64_t(info.f_bavail) * int64_t(info.f_frsize) : 0;
}

int64_t lockable_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return int64_t(limit.rlim_cur);
}

// A ProbeFile is a file in the folder that is removed again whatever happens.
class ProbeFile {
 public:
  explicit ProbeFile(const std::string& folder) : name_(folder + "/.antichain-XXXXXX") {
    file_ = ::mkstemp(name_.data());
    if (file_ >= 0) ::unlink(name_.c_str());
  }
  ~ProbeFile() {
    if (file_ >= 0) ::close(file_);
  }
  ProbeFile(const ProbeFile&) = delete;
  int file() const { return file_; }

 private:
  std::string name_;
  int file_ = -1;
};

std::string why_unusable(const std::string& folder) {
  if (folder.empty() || ProbeFile(folder).file() >= 0) return "";
  return std::strerror(errno);
}

// Returns 0 when nothing can be written.
double write_speed(const std::string& folder) {
  if (folder.empty()) return 0;
  const ProbeFile probe(folder);
  if (probe.file() < 0) return 0;
  const std::vector<char> bytes(size_t(probe_bytes), 'a');
  const auto start = std::chrono::steady_clock::now();
  for (int64_t done = 0; done < probe_bytes;) {
    const ssize_t n = ::write(probe.file(), bytes.data() + done, size_t(probe_bytes - done));
    if (n <= 0) return 0;
    done += n;
  }
  if (::fsync(probe.file()) != 0) return 0;
  return double(probe_bytes) / seconds_since(start);
}

std::string locale_named() {
  for (const char* variable : {"LC_ALL", "LC_NUMERIC", "LANG"})
    if (const char* name = std::getenv(variable); name && *name) return name;
  return "C";
}

std::vector<EngineFacts> examine_engines() {
  std::vector<EngineFacts> all;
  for (const EngineModule& module : engine_modules())
    all.push_back({.missing = load_module(module.library), .present = module.present()});
  return all;
}

// Computes for a moment.
double share_without_core() {
  constexpr double moment_s = 0.2;  // a scheduler's turns are some milliseconds
  const auto start = std::chrono::steady_clock::now();
  const StarvedTime starved;
  while (seconds_since(start) < moment_s) continue;
  return starved.seconds() / seconds_since(start);
}

double load_of_host() {
  double minute = 0;
  return ::getloadavg(&minute, 1) == 1 ? minute : 0;
}

RankFacts examine_rank(Rank& rank, const std::string& folder) {
  return {.host = rank.job.host(),
          .version = version(),
          .mpi = mpi_library(),
          .device = rank.context.backend().description(),
          .locale = locale_named(),
          .engines = examine_engines(),
          .cores = bound_cores(),
          .host_cores = available_cores_on_host(),
          .threads = rank.context.threads(),
          .starved_share = share_without_core(),
          .load = load_of_host(),
          .memory_bytes = available_memory_bytes(),
          .locked_bytes = lockable_bytes(),
          .shared_bytes = free_bytes("/dev/shm"),
          .folder = why_unusable(folder),
          .folder_free_bytes = folder.empty() ? 0 : free_bytes(folder.c_str())};
}

}  // namespace

std::string to_text(const RankFacts& f) {
  nlohmann::json engines = nlohmann::json::array();
  for (const EngineFacts& engine : f.engines) engines.push_back({engine.missing, engine.present});
  return nlohmann::json{f.host,         f.version,       f.mpi,    f.device,
                        f.locale,       engines,         f.cores,  f.host_cores,
                        f.threads,      f.starved_share, f.load,   f.memory_bytes,
                        f.locked_bytes, f.shared_bytes,  f.folder, f.folder_free_bytes}
      .dump();
}

RankFacts facts_from_text(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text);
  std::vector<EngineFacts> engines;
  for (const nlohmann::json& engine : j[5]) engines.push_back({engine[0], engine[1]});
  return {.host = j[0],
          .version = j[1],
          .mpi = j[2],
          .device = j[3],
          .locale = j[4],
          .engines = std::move(engines),
          .cores = j[6],
          .host_cores = j[7],
          .threads = j[8],
          .starved_share = j[9],
          .load = j[10],
          .memory_bytes = j[11],
          .locked_bytes = j[12],
          .shared_bytes = j[13],
          .folder = j[14],
          .folder_free_bytes = j[15]};
}

JobFacts examine(Rank& rank, const std::string& folder) {
  JobFacts job{.folder = folder};
  for (const std::string& text : rank.job.gather(to_text(examine_rank(rank, folder))))
    job.ranks.push_back(facts_from_text(text));
  if (rank.job.size() > 1) {
    const ChosenTransport tensors = choose_transport(rank.context, rank.job, "auto");
    job.link = measure_link(tensors.over(rank.job), rank.context);
    job.link_way = tensors.way();
  }
  job.clock_offset_s = clock_offsets(rank.job);
  if (rank.prints()) job.folder_bytes_per_s = write_speed(folder);
  return job;
}

}  // namespace antichain
