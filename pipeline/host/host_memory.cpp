#include "pipeline/host/host_memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace antichain {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

// Reads "MemAvailable:  123 kB" from a file of such lines and returns `otherwise` where there is none.
int64_t field_bytes(const char* file, const std::string& name, int64_t otherwise) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  return otherwise;
}

int64_t number_in(const std::string& file, int64_t otherwise) {
  std::ifstream in(file);
  int64_t number = 0;
  return in >> number ? number : otherwise;  // control groups version 2 write "max" for no limit
}

// The page cache counts as used, but the system reclaims it.
int64_t inactive_file_bytes(const std::string& file) {
  std::ifstream in(file);
  std::string name;
  for (int64_t bytes = 0; in >> name >> bytes;)
    if (name == "inactive_file" || name == "total_inactive_file") return bytes;
  return 0;
}

int64_t left_in(const std::string& folder, const char* limit, const char* used) {
  const int64_t most = number_in(folder + limit, unlimited);
  if (most > (int64_t(1) << 60)) return unlimited;  // control groups version 1 mean no limit by this
  return std::max<int64_t>(most - number_in(folder + used, 0) + inactive_file_bytes(folder + "/memory.stat"),
                           0);
}

// Reads "0::/user.slice/job" (version 2) or "9:memory:/job" (version 1). A limit holds for all groups below
// it.
int64_t left_in_groups() {
  int64_t left = unlimited;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const bool second = line.starts_with("0::");
    const size_t first = line.find(":memory:");
    if (!second && first == std::string::npos) continue;
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = second ? line.substr(3) : line.substr(first + 8);
    if (path == "/") path.clear();
    for (;; path.resize(path.rfind('/'))) {
      left =
          std::min(left, second ? left_in(root + path, "/memory.max", "/memory.current")
                                : left_in(root + path, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
      if (path.empty()) break;
    }
  }
  return left;
}

// This reserve covers code that oneDNN generates, buffers of HDF5 and MPI, and blocks too small to return.
constexpr int64_t by_the_way_bytes = 64 << 20;

// Pages of files stay, so as many of them were there at the peak.
int64_t but_for_files(const std::string& name) {
  const char* status = "/proc/self/status";
  return field_bytes(status, name, 0) - field_bytes(status, "RssFile", 0);
}

int64_t stack_bytes() {
  struct rlimit limit {};
  const bool known = ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? int64_t(limit.rlim_cur) : 8 << 20;
}

}  // namespace

int64_t address_space_bytes() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return std::max<int64_t>(
      int64_t(limit.rlim_cur) - field_bytes("/proc/self/status", "VmSize", 0) - by_the_way_bytes, 0);
}

void check_address_space(int threads) {
  const int64_t left = address_space_bytes(), needed = threads * stack_bytes();
  if (left > needed) return;
  throw Error(
      fmt::format("the addresses that this process may take (ulimit -v) are too few for its libraries and {} "
                  "more thread(s): it lacks {} MiB at least",
                  threads, (needed - left) / (1 << 20) + 1),
      "raise ulimit -v", ExitCode::out_of_memory);
}

Error beyond_limits(const std::system_error& error) {
  const bool threads = error.code() == std::errc::resource_unavailable_try_again;
  if (!threads) return Error(error.what(), "", ExitCode::failure);
  return Error(fmt::format("the system starts no more threads for this process ({})", error.code().message()),
               "raise ulimit -u or ulimit -v, or use fewer ranks and --threads", ExitCode::out_of_memory);
}

int64_t available_memory_bytes() {
  return std::min(field_bytes("/proc/meminfo", "MemAvailable", unlimited), left_in_groups());
}

int64_t resident_bytes() { return but_for_files("VmRSS"); }
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }
void return_free_memory() { ::malloc_trim(0); }
int64_t peak_resident_bytes() { return but_for_files("VmHWM"); }

}  // namespace antichain
