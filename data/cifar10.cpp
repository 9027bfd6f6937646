#include "data/cifar10.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "data/watched_file.h"
#include "framework/error.h"
#include "framework/files/hash_stream.h"
#include "framework/printable.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using Format = Cifar10Format;

constexpr const char* layout_hint =
    "expected the official binary layout: data_batch_1.bin … data_batch_5.bin and test_batch.bin";

// A Part has the records of one file. The images stay in the file; the labels, which every epoch needs, are
// kept.
struct Part {
  std::unique_ptr<WatchedFile> file;
  int64_t first = 0;  // number of its first record within the split
};

struct Records {
  std::vector<Part> parts;
  std::vector<uint8_t> labels;
  HashStream hash;  // of all records, as they stand in the files
};

class Cifar10 : public DataSet {
 public:
  Cifar10(std::string name, std::vector<std::string> class_names, Records records)
      : name_(std::move(name)), class_names_(std::move(class_names)), records_(std::move(records)) {}

  uint64_t contents() const override { return records_.hash.value(); }
  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(records_.labels.size()); }
  Shape image_shape() const override { return {3, Format::side, Format::side}; }
  std::span<const std::string> class_names() const override { return class_names_; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    ANTICHAIN_CHECK(int64_t(out.size()) == Format::pixel_bytes, "an image needs a buffer of its own size");
    ANTICHAIN_CHECK(index >= 0 && index < size(), "an image index within the data set");
    const auto next = std::ranges::upper_bound(records_.parts, index, {}, &Part::first);
    const Part& part = *std::prev(next);
    const int64_t record = index - part.first;
    part.file->read(record * Format::record_bytes + 1, out, record);
  }
  int label(int64_t index) const override { return records_.labels.at(size_t(index)); }
  std::string replaced() const override {
    for (const Part& part : records_.parts) {
      if (part.file->replaced())
        return fmt::format("{} is another file now; training goes on with the one it was", part.file->path());
    }
    return "";
  }

 private:
  std::string name_;
  std::vector<std::string> class_names_;
  Records records_;
};

// Returns the folder with the files: `directory` itself or the archive's folder in it.
fs::path find_folder(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw Error("no such data folder: " + directory.string(), layout_hint);
  }
  const fs::path nested = directory / Format::folder;
  return fs::is_directory(nested, ignored) ? nested : directory;
}

// Reads the whole file once, block by block: it is better to find unreadable files before training than after
// an hour.
void append_records(const WatchedFile& file, Records& all) {
  constexpr int64_t block_records = 512;
  std::vector<uint8_t> block(size_t(block_records * Format::record_bytes));
  const int64_t records = file.bytes() / Format::record_bytes;
  for (int64_t first = 0; first < records; first += block_records) {
    const int64_t count = std::min(block_records, records - first);
    file.read(first * Format::record_bytes, {block.data(), size_t(count * Format::record_bytes)}, first);
    all.hash.add({reinterpret_cast<const char*>(block.data()), size_t(count * Format::record_bytes)});
    for (int64_t r = 0; r < count; ++r) {
      const uint8_t label = block[size_t(r * Format::record_bytes)];
      if (label >= Format::classes) {
        throw Error(fmt::format("{}: record {} has label {}, but labels are 0 to {}", file.path(), first + r,
                                label, Format::classes - 1),
                    "the file is damaged or of another data set");
      }
      all.labels.push_back(label);
    }
  }
}

void append_file(const fs::path& path, Records& records) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) {
    throw Error(
        fmt::format("can't read {} ({})", path.string(), failed ? failed.message() : "it is no plain file"),
        layout_hint);
  }
  auto file = std::make_unique<WatchedFile>(path.string());
  if (file->bytes() == 0 || file->bytes() % Format::record_bytes != 0) {
    throw Error(fmt::format("{} is truncated: {} bytes, not a multiple of the {} bytes of a record",
                            path.string(), file->bytes(), Format::record_bytes),
                "fetch or unpack the data set again");
  }
  const auto first = int64_t(records.labels.size());
  append_records(*file, records);
  records.parts.push_back({std::move(file), first});
}

Records read_train_files(const fs::path& folder) {
  Records records;
  append_file(folder / Format::train_file(1), records);
  bool ended = false;  // a subset may lack the last files, but none before one that is there
  for (int number = 2; number <= Format::train_files; ++number) {
    const fs::path file = folder / Format::train_file(number);
    if (std::error_code none; fs::status(file, none).type() == fs::file_type::not_found) {
      ended = true;
    } else if (ended) {
      throw Error(fmt::format("{} is missing though {} is there",
                              (folder / Format::train_file(number - 1)).string(), Format::train_file(number)),
                  "fetch or unpack the data set again");
    } else {
      append_file(file, records);
    }
  }
  return records;
}

std::vector<std::string> read_class_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::ifstream in(folder / Format::names_file);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(printable(line));
  }
  if (int(names.size()) == Format::classes) return names;
  names.clear();  // absent or foreign: the numbers will do
  for (int label = 0; label < Format::classes; ++label) names.push_back(fmt::format("class {}", label));
  return names;
}

std::string name_of(const fs::path& folder, size_t train_images, size_t test_images) {
  if (std::error_code none; fs::exists(folder / Format::generated_marker, none))
    return "generated (not CIFAR-10)";
  const bool whole = train_images == Format::train_images && test_images == Format::test_images;
  return whole ? "CIFAR-10" : "CIFAR-10 (a subset)";
}

}  // namespace

std::string Cifar10Format::train_file(int number) { return fmt::format("data_batch_{}.bin", number); }
std::string Cifar10Format::test_file() { return "test_batch.bin"; }

DataSplits read_cifar10(const std::string& directory) {
  const fs::path folder = find_folder(directory);
  Records train = read_train_files(folder), test;
  append_file(folder / Format::test_file(), test);
  const std::string name = name_of(folder, train.labels.size(), test.labels.size());
  const std::vector<std::string> class_names = read_class_names(folder);
  return {.train = std::make_shared<Cifar10>(name, class_names, std::move(train)),
          .test = std::make_shared<Cifar10>(name, class_names, std::move(test))};
}

}  // namespace antichain
