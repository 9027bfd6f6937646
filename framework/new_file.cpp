#include "framework/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "framework/error.h"
#include "framework/parse_number.h"
#include "framework/paths.h"

namespace antichain {
namespace {

constexpr std::string_view ending = ".part";
constexpr size_t random_digits = 12;

// Returns "run.json.4711-0123456789ab.part".
std::string name_beside(const std::string& target) {
  std::random_device random;
  const uint64_t word = (uint64_t(random()) << 32 | random()) & ((uint64_t(1) << 4 * random_digits) - 1);
  return fmt::format("{}.{}-{:0{}x}{}", target, ::getpid(), word, random_digits, ending);
}

// Returns the process that named a file so, or 0 where it is no such name.
pid_t process_of(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.ends_with(ending)) return 0;
  name.remove_prefix(target.size()), name.remove_suffix(ending.size());
  const size_t dash = name.find('-');
  if (dash == name.npos || name.front() != '.' || name.size() != dash + 1 + random_digits) return 0;
  const std::string_view number = name.substr(1, dash - 1), random = name.substr(dash + 1);
  const bool ours = random.find_first_not_of("0123456789abcdef") == random.npos;
  return ours ? std::max(0, parse_number<pid_t>(number).value_or(0)) : 0;
}

bool has_ended(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

[[noreturn]] void fail_to(const char* what, const std::string& target) {
  throw Error(fmt::format("can't {} {}: {}", what, target, std::strerror(errno)),
              "check the folder, its permissions and the free space");
}

// Syncs the folder so that the new name survives a power cut. Not every file system can do this; the file
// itself is safe anyway.
void sync_folder_of(const std::string& path) {
  const FileHandle folder(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder >= 0) ::fsync(folder);
}

}  // namespace

NewFile::NewFile(std::string target)
    : target_(std::move(target)),
      path_(name_beside(target_)),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (file_ < 0) fail_to("create", target_);
}

NewFile::~NewFile() {
  if (!committed_) ::unlink(path_.c_str());
}

std::string NewFile::open_path() const { return fmt::format("/proc/self/fd/{}", int(file_)); }

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) fail_to("write", target_);
    if (n > 0) bytes.remove_prefix(size_t(n));
  }
}

void NewFile::commit() {
  if (::fsync(file_) != 0) fail_to("write", target_);
  if (::close(file_.release()) != 0) fail_to("write", target_);
  if (std::rename(path_.c_str(), target_.c_str()) != 0) fail_to("rename into", target_);
  committed_ = true;
  sync_folder_of(target_);
}

void remove_abandoned(const std::string& folder, std::span<const char* const> names) {
  for (const std::string& name : names_in(folder))
    for (const char* target : names) {
      const std::string path = folder + "/" + name;
      const pid_t process = process_of(name, target);
      struct stat status {};
      if (process > 0 && has_ended(process) && ::lstat(path.c_str(), &status) == 0 &&
          S_ISREG(status.st_mode) && status.st_uid == ::geteuid())
        ::unlink(path.c_str());
    }
}

namespace {

// O_NONBLOCK: opening a pipe does not wait for its reader, and is refused.
int open_plain(const std::string& path, bool append) {
  if (!append) NewFile(path).commit();
  FileHandle file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  struct stat status {};
  const bool plain = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!plain)
    throw Error(fmt::format("can't write {}: {}", path, file < 0 ? std::strerror(errno) : "it is no file"),
                "check the folder, its permissions and the free space");
  return file.release();
}

}  // namespace

GrowingFile::GrowingFile(const std::string& file, bool append) : file_(open_plain(file, append)) {}

bool GrowingFile::add(std::string_view text) {
  waiting_ += text;
  size_t at = 0;
  for (error_ = 0; at < waiting_.size() && error_ == 0;) {
    const ssize_t n = ::write(file_, waiting_.data() + at, waiting_.size() - at);
    if (n < 0 && errno != EINTR) error_ = errno;
    if (n > 0) at += size_t(n);
  }
  waiting_.erase(0, at);
  return waiting_.empty();
}

std::string GrowingFile::lost() { return add("") ? "" : std::strerror(error_); }

}  // namespace antichain
