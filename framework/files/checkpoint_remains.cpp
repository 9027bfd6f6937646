#include "framework/files/checkpoint_remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "framework/file_handle.h"
#include "framework/files/checkpoint.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/paths.h"

namespace antichain {
namespace {

// An open folder: what its path leads to may change meanwhile.
class Remains {
 public:
  explicit Remains(const std::string& path)
      : folder_(::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (folder_ < 0 || !list())
      why_ = fmt::format("it can't be read as a folder: {}", std::strerror(errno));
    else
      judge();
  }

  const std::string& why_foreign() const { return why_; }
  bool has_manifest() const { return std::ranges::find(names_, checkpoint_manifest_name) != names_.end(); }

  std::string empty() {
    std::stable_partition(names_.begin(), names_.end(),
                          [](const auto& name) { return name == checkpoint_manifest_name; });
    for (const std::string& name : names_)
      if (::unlinkat(folder_, name.c_str(), 0) != 0 && errno != ENOENT) return std::strerror(errno);
    return "";
  }

 private:
  bool list() {
    const int copy = ::dup(folder_);
    DIR* all = copy < 0 ? nullptr : ::fdopendir(copy);
    if (!all) return false;
    while (const dirent* entry = ::readdir(all))
      if (const std::string name = entry->d_name; name != "." && name != "..") names_.push_back(name);
    ::closedir(all);
    return true;
  }

  void judge() {
    for (const std::string& name : names_) {
      struct stat status {};
      const bool file = ::fstatat(folder_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode));
      if (!file || (name != checkpoint_manifest_name && !is_checkpoint_file_name(name)))
        why_ = fmt::format("it holds {}, which no checkpoint has", name);
      else if (name == checkpoint_manifest_name && S_ISREG(status.st_mode) && !begins_as_ours())
        why_ = fmt::format("its {} is of something else", name);
      if (!why_.empty()) return;
    }
  }

  // The text may be torn, or damaged further down.
  bool begins_as_ours() const {
    const FileHandle file(::openat(folder_, checkpoint_manifest_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    std::string text(manifest_beginning.size(), '\0');
    const ssize_t n = file < 0 ? -1 : ::read(file, text.data(), text.size());
    return n >= 0 && manifest_beginning.starts_with(text.substr(0, size_t(n)));
  }

  const FileHandle folder_;
  std::vector<std::string> names_;
  std::string why_;
};

}  // namespace

std::string why_no_checkpoint(const std::string& path, bool complete) {
  if (is_link(path)) return "it is a link";
  const Remains remains(path);
  if (remains.why_foreign().empty() && complete && !remains.has_manifest())
    return fmt::format("it has no {}", checkpoint_manifest_name);
  return remains.why_foreign();
}

std::string remove_checkpoint(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? "" : std::strerror(errno);
  if (S_ISLNK(status.st_mode)) return ::unlink(path.c_str()) == 0 ? "" : std::strerror(errno);
  Remains remains(path);
  if (!remains.why_foreign().empty()) return remains.why_foreign();
  if (const std::string why = remains.empty(); !why.empty()) return why;
  return ::rmdir(path.c_str()) == 0 ? "" : std::strerror(errno);
}

}  // namespace antichain
