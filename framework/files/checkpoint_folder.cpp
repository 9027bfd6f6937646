#include "framework/files/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "framework/file_handle.h"
#include "framework/files/checkpoint_remains.h"
#include "framework/files/hash_stream.h"
#include "framework/paths.h"
#include "framework/say.h"

namespace antichain {

namespace {

constexpr std::string_view complete = "step-", partial = ".partial-", partial_best = ".partial-best-",
                           removed = ".removed-";
constexpr size_t written_at_once = 8 << 20;

[[noreturn]] void fail_to(const std::string& what, const std::string& path) {
  throw Error(fmt::format("can't {} {}: {}", what, path, std::strerror(errno)),
              "check the folder, its permissions and the free space");
}

void sync_folder(const std::string& path) {
  const FileHandle folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems can't sync a folder; then the names are as safe as they get.
  if (folder < 0 || (::fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP)) fail_to("sync", path);
}

std::string name_of(std::string_view prefix, int64_t step) { return fmt::format("{}{:012}", prefix, step); }

std::optional<int64_t> step_of(const std::string& name, std::string_view prefix) {
  constexpr size_t most_digits = 18;
  if (!name.starts_with(prefix) || name.size() == prefix.size() || name.size() > prefix.size() + most_digits)
    return {};
  const int64_t step = std::atoll(name.c_str() + prefix.size());
  return name_of(prefix, step) == name ? std::optional(step) : std::nullopt;
}

// Returns the names of this kind in `path`, largest step first.
std::vector<std::string> names(const std::string& path, std::string_view prefix) {
  std::vector<std::pair<int64_t, std::string>> found;
  if (!exists(path)) return {};
  for (const std::string& name : names_in(path))
    if (const auto step = step_of(name, prefix)) found.emplace_back(*step, name);
  std::ranges::sort(found, std::greater());
  std::vector<std::string> all;
  for (auto& [step, name] : found) all.push_back(std::move(name));
  return all;
}

bool is_token(const std::string& name) {
  constexpr size_t random = 16;
  if (!name.starts_with(CheckpointFolder::token_prefix)) return false;
  const std::string rest = name.substr(CheckpointFolder::token_prefix.size());
  return rest.find_first_not_of("0123456789abcdef") == random && rest[random] == '-' &&
         rest.size() > random + 1 && rest.find_first_not_of("0123456789", random + 1) == rest.npos;
}

// A token is an empty file.
int remove_tokens(const std::string& path) {
  int count = 0;
  for (const std::string& name : names_in(path)) {
    struct stat status {};
    const std::string token = path + "/" + name;
    if (is_token(name) && ::lstat(token.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size == 0 && ::unlink(token.c_str()) == 0)
      ++count;
  }
  return count;
}

// Throws Error where something that the program did not make has the name.
void make_way(const std::string& checkpoint) {
  if (is_link(checkpoint)) {
    if (::unlink(checkpoint.c_str()) != 0) fail_to("remove the link", checkpoint);
  } else if (exists(checkpoint)) {
    if (const std::string why = why_no_checkpoint(checkpoint, true); !why.empty())
      throw Error(fmt::format("{} is in the way of a checkpoint, and is none: {}", checkpoint, why),
                  "move it to another folder");
  }
}

// Another rank may have written the file, on another host. Listing the folder makes a client of a file server
// ask for the server's state.
void wait_until_whole(const std::string& folder, const CheckpointFile& file, double patience_s) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) try {
      return check_checkpoint_file(folder, file);
    } catch (const Damaged& damaged) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() >= patience_s)
        throw Error(fmt::format("a file is not here as its rank wrote it: {}", damaged.what()),
                    "do all hosts share this folder?");
      look_again(folder);
      ::usleep(100'000);
    }
}

// A damaged checkpoint counts as one of the step that its name says.
bool is_of_step(const std::string& path, int64_t step) {
  if (!why_no_checkpoint(path, true).empty()) return false;
  try {
    return manifest_from_json(read_manifest(path), path).position.step == step;
  } catch (const Error&) {
    return true;
  }
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::vector<std::string> CheckpointFolder::list() const {
  std::vector<std::string> paths;
  for (const std::string& name : names(path_, complete)) paths.push_back(path_ + "/" + name);
  return paths;
}

std::string CheckpointFolder::of_step(int64_t step) const { return path_ + "/" + name_of(complete, step); }
std::string CheckpointFolder::best() const { return path_ + "/best"; }
std::string CheckpointFolder::path_of(int64_t step, CheckpointKind kind) const {
  return kind == CheckpointKind::best ? best() : of_step(step);
}
std::string CheckpointFolder::partial_of(int64_t step, CheckpointKind kind) const {
  return path_ + "/" + name_of(kind == CheckpointKind::best ? partial_best : partial, step);
}

int CheckpointFolder::clean() const {
  int count = remove_tokens(path_);
  for (const std::string_view prefix : {partial, partial_best, removed})
    for (const std::string& name : names(path_, prefix)) {
      const std::string why = remove_checkpoint(path_ + "/" + name);
      if (!why.empty()) warn(fmt::format("{}/{} is not removed: {}", path_, name, why));
      count += int(why.empty());
    }
  return count;
}

bool CheckpointFolder::is_name_of_ours(const std::string& name) {
  const auto has = [&](std::string_view prefix) { return step_of(name, prefix).has_value(); };
  return name == "lock" || name == "best" || is_token(name) || has(complete) || has(partial) ||
         has(partial_best) || has(removed);
}

void CheckpointFolder::begin(int64_t step, CheckpointKind kind) const {
  const std::string folder = partial_of(step, kind);
  if (::mkdir(folder.c_str(), 0755) == 0) return;
  if (errno != EEXIST) fail_to("make the folder", folder);
  // Another rank made it, unless it was there at the start and could not be removed.
  if (const std::string why = why_no_checkpoint(folder, false); !why.empty())
    throw Error(fmt::format("can't write to {}: {}", folder, why), "move it to another folder");
}

void CheckpointFolder::publish(const Manifest& manifest, CheckpointKind kind) const {
  const int64_t step = manifest.position.step;
  const std::string from = partial_of(step, kind), to = path_of(step, kind);
  for (const CheckpointFile& file : manifest.files) wait_until_whole(from, file, patience_s_);
  write_synced(from + "/" + checkpoint_manifest_name, to_json(manifest));
  sync_folder(from);
  make_way(to);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail_to("rename into", to);
    // A checkpoint of this name is already there: of this step, because the run went back to an earlier one,
    // or the best so far. The two are exchanged in one call, or one after the other where the file system has
    // no such call.
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
      const std::string old = path_ + "/" + name_of(removed, step);
      if (::rename(to.c_str(), old.c_str()) != 0 || ::rename(from.c_str(), to.c_str()) != 0)
        fail_to("rename into", to);
      remove_checkpoint(old);
    } else {
      remove_checkpoint(from);
    }
  }
  sync_folder(path_);
}

void CheckpointFolder::discard(int64_t step, CheckpointKind kind) const {
  remove_checkpoint(partial_of(step, kind));
}

void CheckpointFolder::prune(int64_t step, int keep) const {
  for (const std::string& name : names(path_, complete)) {
    const int64_t its_step = *step_of(name, complete);
    const std::string path = path_ + "/" + name, old = path_ + "/" + name_of(removed, its_step);
    if (its_step > step || (is_link(path) ? keep > 0 : !is_of_step(path, its_step) || keep-- > 0)) continue;
    if (::rename(path.c_str(), old.c_str()) != 0) fail_to("remove", path);
    if (const std::string why = remove_checkpoint(old); !why.empty())
      throw Error(fmt::format("can't remove {}: {}", old, why), "remove it");
  }
}

bool is_checkpoint(const std::string& path) {
  const std::string plain = without_slash(path);
  return step_in_name(plain) || exists(plain + "/" + checkpoint_manifest_name);
}

std::optional<int64_t> step_in_name(const std::string& checkpoint) {
  const std::string plain = without_slash(checkpoint);
  return step_of(plain.substr(plain.rfind('/') + 1), complete);  // npos + 1 is 0
}

struct SyncedFile::State {
  std::string path;
  std::function<void()> beat;
  FileHandle file;
  std::string small;  // pieces that wait for more
  int64_t bytes = 0, begun = 0;
  HashStream hash;

  void put(std::string_view piece) {
    for (; !piece.empty(); beat()) {
      const ssize_t n = ::write(file, piece.data(), std::min(piece.size(), written_at_once));
      if (n < 0 && errno != EINTR) fail_to("write", path);
      if (n > 0) bytes += n, piece.remove_prefix(size_t(n));
      // This tells the disk to start writing while more is being made. It is only a hint: fsync() reports
      // failures.
      if (bytes - begun >= int64_t(written_at_once))
        ::sync_file_range(file, begun, bytes - begun, SYNC_FILE_RANGE_WRITE), begun = bytes;
    }
  }
};

SyncedFile::SyncedFile(const std::string& path, std::function<void()> beat)
    : state_(new State{
          path, std::move(beat),
          FileHandle(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644))}) {
  if (state_->file < 0) fail_to("create", path);
}

SyncedFile::~SyncedFile() = default;

void SyncedFile::write(std::string_view piece) {
  constexpr size_t most_small = 1 << 16;
  State& s = *state_;
  s.hash.add(piece);
  if (s.small.size() + piece.size() > most_small) s.put(std::exchange(s.small, {}));
  if (piece.size() > most_small)
    s.put(piece);
  else
    s.small += piece;
}

void SyncedFile::finish() {
  State& s = *state_;
  s.put(std::exchange(s.small, {}));
  if (::fsync(s.file) != 0) fail_to("write", s.path);
  if (::close(s.file.release()) != 0) fail_to("write", s.path);
}

int64_t SyncedFile::bytes() const { return state_->bytes; }
uint64_t SyncedFile::hash() const { return state_->hash.value(); }

void write_synced(const std::string& path, const std::string& bytes) {
  SyncedFile file(path, [] {});
  file.write(bytes);
  file.finish();
}

}  // namespace antichain
