#include "framework/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "framework/error.h"

namespace antichain {

std::string user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/antichain";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/antichain";
  return "";
}

std::string shared_cache_folder() {
  std::error_code nowhere;
  const std::string folder =
      (std::filesystem::temp_directory_path(nowhere) / fmt::format("antichain-cache-{}", ::geteuid()))
          .string();
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("the folder {} {}", folder, why),
                "set HOME or XDG_CACHE_HOME, from which a folder for data is taken, or give --data-dir");
  };
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    refuse(fmt::format("can't be made ({})", std::strerror(errno)));
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0) refuse(fmt::format("can't be read ({})", std::strerror(errno)));
  if (!S_ISDIR(found.st_mode)) refuse("is not a folder");
  if (found.st_uid != ::geteuid()) refuse(fmt::format("belongs to another user ({})", found.st_uid));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse("may be written by other users");
  return folder;
}

}  // namespace antichain
