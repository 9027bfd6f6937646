#include "data/obtain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "framework/cache_folder.h"
#include "framework/error.h"
#include "framework/paths.h"

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

namespace {

namespace fs = std::filesystem;

std::string environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr ? value : "";
}

fs::path cache_folder(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const std::string cache = user_cache_folder(); !cache.empty()) return cache;
  return shared_cache_folder();
}

// A WorkFolder is a folder beside its final place, removed unless it is moved there: the final place is whole
// or does not exist.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& target) : target_(target), path_(target.string() + ".part-XXXXXX") {
    std::error_code failed;
    fs::create_directories(path_.parent_path(), failed);
    std::string name = path_.string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("can't make the folder {} ({})", name, std::strerror(errno)),
                  "set XDG_CACHE_HOME to a folder that can be written, or give --data-dir");
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  // Moves the old contents of the final place into this folder, which is removed later. A job that reads them
  // has its files open.
  void take_from_target(const char* name) const {
    std::error_code failed;
    fs::rename(target_, path_ / name, failed);
    if (failed && (exists(target_.string()) || is_link(target_)))
      throw Error(
          fmt::format("{} is not whole and can't be replaced ({})", target_.string(), failed.message()),
          "remove it");
  }
  // Another job on this machine may have been faster; then its result serves as well.
  void move_to_target(const fs::path& inner) const {
    std::error_code failed;
    fs::rename(inner, target_, failed);
    if (failed && !is_folder(target_)) {
      throw Error(
          fmt::format("can't rename {} to {} ({})", inner.string(), target_.string(), failed.message()));
    }
  }

 private:
  fs::path target_, path_;
};

// Returns "", or why the download failed.
std::string download(const ObtainOptions& options, const fs::path& archive) {
  const std::string limit = std::to_string(options.limit_s);
  int status = run_command({"curl", "--fail", "--location", "--silent", "--max-time", limit, "--output",
                            archive.string(), options.url})
                   .status;
  if (status == 127) {
    status = run_command({"timeout", limit, "wget", "--quiet", "--tries=1", "--output-document",
                          archive.string(), options.url})
                 .status;
  }
  if (status == 127) return "neither curl nor wget is installed";
  if (status != 0) return fmt::format("it could not be downloaded within {} s", options.limit_s);
  const std::string sum = run_command({"md5sum", archive.string()}).output.substr(0, 32);
  if (sum != options.md5) return fmt::format("the download's MD5 sum is {}, not {}", sum, options.md5);
  return "";
}

std::string fetch(const PublishedSet& set, ObtainOptions options, const fs::path& target) {
  if (options.url.empty()) options.url = set.url;
  if (options.md5.empty()) options.md5 = set.md5;
  const WorkFolder work(target);
  const fs::path archive = work.path() / "archive.tar.gz";
  if (const std::string why = download(options, archive); !why.empty()) return why;
  if (run_command({"tar", "-xzf", archive.string(), "-C", work.path().string()}).status != 0 ||
      !is_folder(work.path() / set.folder)) {
    return "the archive could not be unpacked";
  }
  work.move_to_target(work.path() / set.folder);
  return "";
}

}  // namespace

Obtained obtain_synthetic(const ObtainOptions& options) {
  const SyntheticOptions& set = options.synthetic;
  const fs::path folder = cache_folder(options.cache_dir) /
                          fmt::format("generated-{}-{}-{}", set.train_images, set.test_images, set.seed);
  if (is_whole_synthetic(folder.string(), set)) return {.directory = folder.string(), .note = ""};
  const bool damaged = exists(folder.string()) || is_link(folder);
  {
    const WorkFolder work(folder);
    write_synthetic((work.path() / "set").string(), set);
    if (damaged && !is_whole_synthetic(folder.string(), set))  // another job may have been faster
      work.take_from_target("damaged");
    work.move_to_target(work.path() / "set");
  }
  return {.directory = folder.string(),
          .note = damaged ? fmt::format("the generated images in {} were not whole: they are made anew",
                                        folder.string())
                          : ""};
}

std::string published_folder(const PublishedSet& set, const ObtainOptions& options) {
  if (!options.data_dir.empty()) return options.data_dir;
  if (std::string given = environment(set.environment); !given.empty()) return given;
  const fs::path cached = cache_folder(options.cache_dir) / set.folder;
  return is_folder(cached) ? cached.string() : "";
}

Obtained obtain_published(const PublishedSet& set, const ObtainOptions& options) {
  if (std::string here = published_folder(set, options); !here.empty())
    return {.directory = std::move(here), .note = ""};
  const fs::path cached = cache_folder(options.cache_dir) / set.folder;
  const std::string why = fetch(set, options, cached);
  if (why.empty())
    return {.directory = cached.string(),
            .note = fmt::format("downloaded {} to {}", set.name, cached.string())};
  const std::string not_here =
      fmt::format("{} was not given (--data-dir or {}) and {}", set.name, set.environment, why);
  if (!set.generated_instead) throw Error(not_here, fmt::format("unpack {} and name its folder", set.url));
  Obtained generated = obtain_synthetic(options);
  generated.instead = true;
  generated.note = fmt::format("{}: training on generated images, which are not {}", not_here, set.name);
  return generated;
}

}  // namespace antichain
