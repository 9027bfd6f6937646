#include "pipeline/host/core_time.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

// This is longer than any clock tick: a thread that ran in between shows a longer run time at the end.
constexpr double shortest_look_s = 0.02;

// A CoreTime is what the system has counted for one thread; it is zero where the system counts nothing.
struct CoreTime {
  double ran_s = 0;     // on a core
  double waited_s = 0;  // ready, but without one; a wait is added once it is over
};

// The file reads "nanoseconds on a core, nanoseconds ready but without one, times given one".
CoreTime core_time(int schedstat) {
  char text[96];
  const ssize_t size = schedstat < 0 ? -1 : ::pread(schedstat, text, sizeof text, 0);
  uint64_t ran = 0, waited = 0;
  const char* const end = text + std::max<ssize_t>(size, 0);
  const auto [behind, error] = std::from_chars(text, end, ran);
  if (size <= 0 || error != std::errc() || behind == end) return {};
  if (std::from_chars(behind + 1, end, waited).ec != std::errc()) return {};
  return {1e-9 * double(ran), 1e-9 * double(waited)};
}

FileHandle open_schedstat(const std::string& thread) {
  return FileHandle(::open((thread + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC));
}

std::vector<pid_t> threads_of(const std::string& process) {
  std::vector<pid_t> threads;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(process + "/task", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    const std::string name = entry->path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != ::gettid()) threads.push_back(thread);
  }
  return threads;
}

// Recognises "4711 (its name) R 1 …": the thread is on a core or ready for one.
bool is_ready(const std::string& thread) {
  std::ifstream in(thread + "/stat");
  std::string text;
  std::getline(in, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'R';
}

}  // namespace

StarvedTime::StarvedTime()
    : file_(open_schedstat("/proc/thread-self")), begin_s_(core_time(file_).waited_s) {}

double StarvedTime::seconds() const { return core_time(file_).waited_s - begin_s_; }

StarvedThreads::StarvedThreads(pid_t process) : process_(process), looked_at_s_(now_s()) {
  const std::string folder = fmt::format("/proc/{}", process_);
  for (const pid_t id : threads_of(folder)) {
    const CoreTime now = core_time(open_schedstat(fmt::format("{}/task/{}", folder, id)));
    threads_[id] = {.waited_before_s = now.waited_s, .waited_s = now.waited_s, .ran_s = now.ran_s};
  }
}

void StarvedThreads::look() {
  const double since_last_s = now_s() - looked_at_s_;
  if (since_last_s < shortest_look_s) return;
  looked_at_s_ += since_last_s;
  for (const pid_t thread : threads_of(fmt::format("/proc/{}", process_))) read(thread, since_last_s);
}

void StarvedThreads::read(pid_t id, double since_last_s) {
  const std::string folder = fmt::format("/proc/{}/task/{}", process_, id);
  const CoreTime now = core_time(open_schedstat(folder));
  Thread& thread = threads_[id];
  const bool ready = is_ready(folder);
  if (ready && thread.ready && now.ran_s > 0 && now.ran_s == thread.ran_s) thread.unserved_s += since_last_s;
  thread.ready = ready;
  thread.waited_s = now.waited_s;
  thread.ran_s = now.ran_s;
}

double StarvedThreads::seconds() const {
  double longest_s = 0;
  for (const auto& [id, thread] : threads_)
    longest_s = std::max({longest_s, thread.waited_s - thread.waited_before_s, thread.unserved_s});
  return longest_s;
}

}  // namespace antichain
