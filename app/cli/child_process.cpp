#include "app/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/error.h"
#include "pipeline/host/stop_signals.h"

namespace antichain {
namespace {

constexpr std::array signals = {SIGINT, SIGTERM, SIGUSR1};
constexpr int most_passed_on = 2;
std::atomic<int> asked{0}, child{0}, passed_on{0};  // lock-free, because signal handlers use them

// A third signal would end mpirun before its ranks, and nothing would end those.
void pass_on(int pid) {
  if (passed_on++ < most_passed_on) ::kill(pid, SIGTERM);
}

void on_signal(int number) {
  asked = number;
  if (const int pid = child; pid > 0) pass_on(pid);
}

[[noreturn]] void become(const std::vector<char*>& words, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setpgid(0, 0);                          // Ctrl-C is for the parent, which counts the signals it forwards
  if (::getppid() != parent) ::_exit(127);  // the parent died before this child could ask to die with it
  for (const int number : signals) ::signal(number, SIG_DFL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::close(STDIN_FILENO);
  ::open("/dev/null", O_RDONLY);
  ::unsetenv("CLICOLOR_FORCE");  // its output goes to a file
  ::execvp(words[0], words.data());
  ::_exit(127);
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

struct StopSignals::Saved {
  std::array<struct sigaction, signals.size()> actions;
};

StopSignals::StopSignals() : saved_(new Saved) {
  asked = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &saved_->actions[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &saved_->actions[i], nullptr);
  delete saved_;
}

bool StopSignals::requested() { return asked != 0; }

void StopSignals::end_if_requested() {
  if (const int number = asked; number != 0)
    throw Error(fmt::format("stopped by {}, and nothing was written", signal_name(number)), "start it again",
                ExitCode(128 + number));
}

bool has_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

std::string own_program() {
  std::error_code failed;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) throw Error("can't find this program: " + failed.message(), "is /proc mounted?");
  return program;
}

int run_child(const std::vector<std::string>& words, const std::string& log_file) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int output = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (output < 0) throw Error("can't write " + log_file, "is its folder there, and yours?");
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) become(arguments, output, parent);
  ::close(output);
  if (pid < 0) throw Error("can't start " + words[0], "too many processes?");
  passed_on = 0;
  child = pid;
  if (StopSignals::requested()) pass_on(pid);  // a signal may have come between the last check and this one
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return exit_code(status);
}

std::string last_line(const std::string& log_file) {
  std::ifstream in(log_file);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t-") != std::string::npos) last = line;
  return last;
}

// mpirun frames its messages in lines of dashes.
std::string last_words(const std::string& log_file) {
  std::ifstream in(log_file);
  std::string ours, page;
  bool in_page = false, first_paragraph = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("antichain: ")) ours = line.substr(11);
    if (line.starts_with("-----")) {
      in_page = first_paragraph = !in_page;
      if (in_page) page.clear();
    } else if (line.empty()) {
      first_paragraph = first_paragraph && page.empty();
    } else if (first_paragraph) {
      page += (page.empty() ? "" : " ") + line;
    }
  }
  if (!ours.empty()) return ours;
  if (page.find("to run as root") != std::string::npos)
    return "mpirun does not start as root: set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
  while (!page.empty() && (page.back() == ':' || page.back() == '.')) page.pop_back();
  return page.empty() ? last_line(log_file) : page;
}

}  // namespace antichain
