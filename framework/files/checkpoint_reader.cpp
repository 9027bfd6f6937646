// Reads a checkpoint. Each file is compared with its hash first: nothing that differs from what was written
// is used, or counts as whole.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "framework/file_handle.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/files/hash_stream.h"
#include "framework/random.h"
#include "framework/say.h"

namespace antichain {

namespace {

constexpr int64_t most_manifest_bytes = 256 << 20;
constexpr size_t hashed_at_once = 1 << 20;

// A plain file that is no link and has from `least` to `most` bytes. Throws Damaged with the reason
// otherwise.
class PlainFile {
 public:
  PlainFile(const std::string& path, int64_t least, int64_t most)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
    struct stat status {};
    if (file_ < 0 && errno == ELOOP)
      throw Damaged(fmt::format("{} is a link, which a checkpoint has none of", path));
    if (file_ < 0 || ::fstat(file_, &status) != 0)
      throw Damaged(fmt::format("can't read {}: {}", path, std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) throw Damaged(fmt::format("{} is no plain file", path));
    if (status.st_size < least || status.st_size > most)
      throw Damaged(fmt::format("{} has {} bytes, but {} {} were written", path, status.st_size,
                                least == most ? "exactly" : "at most", most));
    bytes_ = size_t(status.st_size);
  }
  size_t bytes() const { return bytes_; }
  // Reads the next n bytes, as many as there is room for.
  void read(std::span<char> room) const {
    for (size_t at = 0; at < room.size();) {
      const ssize_t n = ::read(file_, room.data() + at, room.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        throw Damaged(
            fmt::format("can't read {}: {}", path_, n == 0 ? "it ends early" : std::strerror(errno)));
      at += size_t(n);
    }
  }

 private:
  const std::string path_;
  const FileHandle file_;
  size_t bytes_ = 0;
};

std::string read_plain(const PlainFile& file) {
  std::string bytes(file.bytes(), '\0');
  file.read(bytes);
  return bytes;
}

void check_hash(uint64_t hash, const CheckpointFile& file, const std::string& path) {
  if (hash != file.hash)
    throw Damaged(fmt::format("{} is damaged: it does not have the hash that the manifest says", path));
}

void check_is_folder(const std::string& checkpoint) {
  struct stat status {};
  if (::lstat(checkpoint.c_str(), &status) != 0)
    throw Damaged(fmt::format("can't read {}: {}", checkpoint, std::strerror(errno)));
  if (S_ISLNK(status.st_mode))
    throw Damaged(fmt::format("{} is a link, not a checkpoint's folder", checkpoint));
  if (!S_ISDIR(status.st_mode)) throw Damaged(fmt::format("{} is no folder", checkpoint));
}

}  // namespace

std::string read_manifest(const std::string& checkpoint) {
  check_is_folder(checkpoint);
  const std::string path = checkpoint + "/" + checkpoint_manifest_name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 && errno == ENOENT)
    throw Damaged(fmt::format("{} has no {}", checkpoint, checkpoint_manifest_name),
                  "it is no complete checkpoint");
  return read_plain({path, 0, most_manifest_bytes});
}

std::string read_checkpoint_file(const std::string& checkpoint, const CheckpointFile& file) {
  const std::string path = checkpoint + "/" + file.name;
  std::string bytes = read_plain({path, file.bytes, file.bytes});
  check_hash(hash_bytes(bytes), file, path);
  return bytes;
}

void check_checkpoint_file(const std::string& checkpoint, const CheckpointFile& file) {
  const std::string path = checkpoint + "/" + file.name;
  const PlainFile plain(path, file.bytes, file.bytes);
  std::string piece(hashed_at_once, '\0');
  HashStream hash;
  for (size_t at = 0; at < plain.bytes(); at += piece.size()) {
    piece.resize(std::min(piece.size(), plain.bytes() - at));
    plain.read(piece);
    hash.add(piece);
  }
  check_hash(hash.value(), file, path);
}

Manifest verify_checkpoint(const std::string& checkpoint) {
  Manifest manifest =
      manifest_from_json(read_manifest(checkpoint), checkpoint + "/" + checkpoint_manifest_name);
  const int64_t step = manifest.position.step, named = step_in_name(checkpoint).value_or(step);
  if (named != step)
    throw Damaged(fmt::format("{} has the name of step {} and says that it is at step {}, which contradict "
                              "each other",
                              checkpoint, named, step),
                  "give it the name that it had");
  for (const CheckpointFile& file : manifest.files) check_checkpoint_file(checkpoint, file);
  return manifest;
}

std::string newest_whole_checkpoint(const std::string& folder) {
  const std::vector<std::string> there = CheckpointFolder(folder).list();
  std::vector<std::string> problems;
  for (const std::string& checkpoint : there) try {
      verify_checkpoint(checkpoint);
      for (const std::string& problem : problems)
        warn(fmt::format("{}; going on from the older {}", problem, checkpoint));
      return checkpoint;
    } catch (const Damaged& damaged) {
      problems.push_back(damaged.what());
    }
  if (there.empty()) return "";
  throw Error(fmt::format("no checkpoint in {} can be used: {}", folder, fmt::join(problems, "; ")),
              "start anew in another folder");
}

}  // namespace antichain
