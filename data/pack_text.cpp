#include "data/pack_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "framework/error.h"
#include "framework/file_handle.h"
#include "framework/files/hdf5_arrays.h"

namespace antichain {
namespace {

constexpr size_t text_block_bytes = size_t(4) << 20;

class TextFile {
 public:
  explicit TextFile(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat found {};
    if (file_ < 0 || ::fstat(file_, &found) != 0 || !S_ISREG(found.st_mode))
      throw Error(
          fmt::format("can't read {} ({})", path_, file_ < 0 ? std::strerror(errno) : "it is no plain file"),
          "name files of text");
    bytes_ = found.st_size;
    if (bytes_ == 0) throw Error(path_ + " is empty", "leave it out");
  }
  int64_t bytes() const { return bytes_; }

  // Calls `take` for every block of the file, in order.
  void read(const auto& take) const {
    std::vector<char> block(text_block_bytes);
    int64_t at = 0;
    for (;;) {
      const ssize_t got = ::pread(file_, block.data(), block.size(), off_t(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(fmt::format("can't read {} ({})", path_, std::strerror(errno)));
      at += got;
      if (at > bytes_ || (got == 0 && at < bytes_))
        throw Error(path_ + " was changed while it was read", "try again");
      if (got == 0) return;
      take(std::string_view(block.data(), size_t(got)));
    }
  }

 private:
  std::string path_;
  FileHandle file_;
  int64_t bytes_ = 0;
};

// Finds the ends of a separator in a text that comes in blocks.
class Separators {
 public:
  explicit Separators(std::string separator) : separator_(std::move(separator)) {}
  // Calls `found` with the place behind each separator that ends in this block. Separators do not overlap.
  void search(std::string_view block, const auto& found) {
    if (separator_.empty()) return;
    text_ += block;
    const int64_t begin = done_ - int64_t(text_.size() - block.size());
    size_t from = 0;
    for (size_t at; (at = text_.find(separator_, from)) != std::string::npos;)
      found(begin + int64_t(from = at + separator_.size()));
    text_.erase(0, std::max(from, text_.size() - std::min(text_.size(), separator_.size() - 1)));
    done_ += int64_t(block.size());
  }

 private:
  std::string separator_, text_;  // text_: of the last block, what may begin a separator
  int64_t done_ = 0;
};

// Returns where each document of all files begins, one file behind the other.
std::vector<int64_t> find_documents(const std::vector<TextFile>& files, const std::string& separator,
                                    const auto& done) {
  std::vector<int64_t> starts;
  int64_t begin = 0;
  for (const TextFile& file : files) {
    starts.push_back(begin);
    Separators separators(separator);
    file.read([&](std::string_view block) {
      separators.search(block, [&](int64_t place) {
        if (place < file.bytes()) starts.push_back(begin + place);
      });
      done(block.size());
    });
    begin += file.bytes();
  }
  return starts;
}

// Returns the places of the documents of a split that has the tokens from `begin` to `end`.
std::vector<int64_t> of_split(const std::vector<int64_t>& starts, int64_t begin, int64_t end) {
  std::vector<int64_t> own = {0};
  for (const int64_t start : starts)
    if (start > begin && start < end) own.push_back(start - begin);
  return own;
}

}  // namespace

PackedText pack_text(const std::vector<std::string>& names, const std::string& out,
                     const PackTextOptions& options) {
  std::vector<TextFile> files;
  int64_t total = 0, done = 0;
  for (const std::string& name : names) total += files.emplace_back(name).bytes();
  const int64_t test = std::llround(double(total) * options.validation), train = total - test;
  if (train < 2 || test < 2)
    throw Error(
        fmt::format("{} bytes of text give {} for training and {} for validation", total, train, test),
        "each part has two at least");
  const auto count = [&](size_t bytes) { options.progress(done += int64_t(bytes), 2 * total); };
  const std::vector<int64_t> starts = find_documents(files, options.separator, count);
  const std::array documents = {of_split(starts, 0, train), of_split(starts, train, total)};
  ArrayWriter writer(
      out, {{.path = "train/tokens", .shape = {train}},
            {.path = "train/documents", .shape = {std::ssize(documents[0])}, .type = ArrayType::i64},
            {.path = "test/tokens", .shape = {test}},
            {.path = "test/documents", .shape = {std::ssize(documents[1])}, .type = ArrayType::i64}});
  int64_t at = 0;
  for (const TextFile& file : files)
    file.read([&](std::string_view block) {
      const std::span bytes = std::as_bytes(std::span(block));
      const auto of_train = size_t(std::clamp<int64_t>(train - at, 0, int64_t(block.size())));
      writer.append(0, bytes.first(of_train));
      writer.append(2, bytes.subspan(of_train));
      at += int64_t(block.size());
      count(block.size());
    });
  for (const size_t split : {0, 1}) writer.append(2 * split + 1, std::as_bytes(std::span(documents[split])));
  writer.set({"name", std::filesystem::path(out).stem().string()});
  writer.set({"tokenizer", "bytes"});
  writer.set({"vocabulary", std::vector<double>{256}});
  writer.finish();
  return {train, test, std::ssize(starts)};
}

}  // namespace antichain
