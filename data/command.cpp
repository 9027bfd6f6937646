#include "data/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "framework/error.h"

extern char** environ;

namespace antichain {
namespace {

// Connects the child's standard output to the pipe and its standard error to /dev/null.
class FileActions {
 public:
  FileActions(int pipe_read, int pipe_write) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, pipe_write, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclose(&actions_, pipe_read);
    posix_spawn_file_actions_addclose(&actions_, pipe_write);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got; (got = read(descriptor, part.data(), part.size())) != 0;) {
    if (got > 0) text.append(part.data(), size_t(got));
    if (got < 0 && errno != EINTR) break;
  }
  return text;
}

int exit_status(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) throw Error("can't make a pipe to run " + words.at(0));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const FileActions actions(pipe_ends[0], pipe_ends[1]);
  const int failed = posix_spawnp(&child, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  close(pipe_ends[1]);
  CommandResult result;
  if (failed == 0) {
    result.output = read_all(pipe_ends[0]);
    result.status = exit_status(child);
  }
  close(pipe_ends[0]);
  return result;
}

}  // namespace antichain
