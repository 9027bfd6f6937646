#include "framework/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "framework/error.h"

namespace antichain {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to(const char* what, const std::string& path, const std::string& reason) {
  throw Error(fmt::format("can't {} {}: {}", what, path, reason), "check the path and its permissions");
}

// Returns the mode, or 0 where nothing is there.
mode_t mode_of(const std::string& path, int (*look)(const char*, struct stat*)) {
  struct stat status {};
  if (look(path.c_str(), &status) == 0) return status.st_mode;
  if (errno != ENOENT && errno != ENOTDIR) fail_to("look at", path, std::strerror(errno));
  return 0;
}

}  // namespace

bool exists(const std::string& path) { return mode_of(path, ::stat) != 0; }
bool is_folder(const std::string& path) { return S_ISDIR(mode_of(path, ::stat)); }
bool is_plain_file(const std::string& path) { return S_ISREG(mode_of(path, ::stat)); }
bool is_link(const std::string& path) { return S_ISLNK(mode_of(path, ::lstat)); }

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    names.push_back(entry->path().filename().string());
  if (failed) fail_to("list the folder", folder, failed.message());
  std::ranges::sort(names);
  return names;
}

void look_again(const std::string& folder) noexcept {
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored))
    continue;
}

void make_folders(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) fail_to("make the folder", path, failed.message());
}

std::string parent_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string resolved(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, failed), failed);
  std::string text = (failed ? fs::path(path).lexically_normal() : whole).string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool are_one(const std::string& a, const std::string& b) {
  std::error_code not_there;
  return fs::equivalent(a, b, not_there) || resolved(a) == resolved(b);
}

bool is_within(const std::string& file, const std::string& folder) {
  const fs::path inner = resolved(parent_of(file)), outer = resolved(folder);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

}  // namespace antichain
