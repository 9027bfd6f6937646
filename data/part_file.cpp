#include "data/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "framework/error.h"

namespace antichain {

PartFile::PartFile(std::string target)
    : target_(std::move(target)), path_(fmt::format("{}.{}.part", target_, ::getpid())) {}

PartFile::~PartFile() {
  if (!committed_) ::unlink(path_.c_str());
}

void PartFile::commit() {
  if (std::rename(path_.c_str(), target_.c_str()) != 0)
    throw Error(fmt::format("can't rename {} to {} ({})", path_, target_, std::strerror(errno)));
  committed_ = true;
  // The new name is on the disk once its folder is.
  const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace antichain
