#include "app/child_process.h"

#include <fcntl.h>
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

namespace antichain {
namespace {

constexpr std::array signals = {SIGINT, SIGTERM, SIGUSR1};
std::atomic<int> asked{0}, child{0};  // lock-free, as handlers need

// A child in the terminal's own group hears Ctrl-C by itself; a second word does it no harm.
void on_signal(int number) {
  asked = number;
  if (const int pid = child; pid > 0) ::kill(pid, SIGTERM);
}

[[noreturn]] void become(const std::vector<char*>& words, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it died before it could be asked
  for (const int number : signals) ::signal(number, SIG_DFL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::close(STDIN_FILENO);
  ::open("/dev/null", O_RDONLY);
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

bool has_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

int run_child(const std::vector<std::string>& words, const std::string& log_file) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int output = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output < 0) throw Error("can't write " + log_file, "is its folder there, and yours?");
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) become(arguments, output, parent);
  ::close(output);
  if (pid < 0) throw Error("can't start " + words[0], "too many processes?");
  child = pid;
  if (StopSignals::requested()) ::kill(pid, SIGTERM);  // asked between the last look and here
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

// mpirun frames its pages in lines of dashes.
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
