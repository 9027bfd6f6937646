#include "data/cifar10.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "framework/error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using Format = Cifar10Format;

constexpr const char* layout_hint =
    "expected the official binary layout: data_batch_1.bin … data_batch_5.bin and test_batch.bin";

class Cifar10 : public DataSet {
 public:
  Cifar10(std::string name, std::vector<std::string> class_names, std::vector<uint8_t> records)
      : name_(std::move(name)), class_names_(std::move(class_names)), records_(std::move(records)) {}

  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(records_.size()) / Format::record_bytes; }
  Shape image_shape() const override { return {3, Format::side, Format::side}; }
  std::span<const std::string> class_names() const override { return class_names_; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    ANTICHAIN_CHECK(int64_t(out.size()) == Format::pixel_bytes, "an image needs a buffer of its own size");
    std::memcpy(out.data(), record(index) + 1, out.size());
  }
  int label(int64_t index) const override { return *record(index); }

 private:
  const uint8_t* record(int64_t index) const {
    ANTICHAIN_CHECK(index >= 0 && index < size(), "an image index within the data set");
    return records_.data() + index * Format::record_bytes;
  }

  std::string name_;
  std::vector<std::string> class_names_;
  std::vector<uint8_t> records_;
};

// The folder with the files: `directory` itself or the archive's folder in it.
fs::path find_folder(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw Error("no such data folder: " + directory.string(), layout_hint);
  }
  const fs::path nested = directory / Format::folder;
  return fs::is_directory(nested, ignored) ? nested : directory;
}

void check_labels(const fs::path& file, const std::vector<uint8_t>& records, size_t first) {
  for (size_t at = first; at < records.size(); at += Format::record_bytes) {
    if (records[at] >= Format::classes) {
      throw Error(fmt::format("{}: record {} has label {}, but labels are 0 to {}", file.string(),
                              (at - first) / Format::record_bytes, records[at], Format::classes - 1),
                  "the file is damaged or of another data set");
    }
  }
}

void append_file(const fs::path& file, std::vector<uint8_t>& records) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw Error(fmt::format("can't read {} ({})", file.string(), std::strerror(errno)), layout_hint);
  }
  const auto bytes = int64_t(fs::file_size(file));
  if (bytes == 0 || bytes % Format::record_bytes != 0) {
    throw Error(fmt::format("{} is truncated: {} bytes, not a multiple of the {} bytes of a record",
                            file.string(), bytes, Format::record_bytes),
                "fetch or unpack the data set again");
  }
  const size_t first = records.size();
  records.resize(first + size_t(bytes));
  if (!in.read(reinterpret_cast<char*>(records.data()) + first, bytes)) {
    throw Error(fmt::format("can't read all {} bytes of {}", bytes, file.string()), "is the disk in order?");
  }
  check_labels(file, records, first);
}

std::vector<uint8_t> read_train_files(const fs::path& folder) {
  std::vector<uint8_t> records;
  append_file(folder / Format::train_file(1), records);
  bool ended = false;  // a subset may lack the last files, but none before one that is there
  for (int number = 2; number <= Format::train_files; ++number) {
    const fs::path file = folder / Format::train_file(number);
    if (!fs::exists(file)) {
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
    if (!line.empty()) names.push_back(line);
  }
  if (int(names.size()) == Format::classes) return names;
  names.clear();  // absent or foreign: the numbers will do
  for (int label = 0; label < Format::classes; ++label) names.push_back(fmt::format("class {}", label));
  return names;
}

std::string name_of(const fs::path& folder, size_t train_bytes, size_t test_bytes) {
  if (fs::exists(folder / Format::generated_marker)) return "generated (not CIFAR-10)";
  const bool whole = train_bytes == size_t(Format::train_images * Format::record_bytes) &&
                     test_bytes == size_t(Format::test_images * Format::record_bytes);
  return whole ? "CIFAR-10" : "CIFAR-10 (a subset)";
}

}  // namespace

std::string Cifar10Format::train_file(int number) { return fmt::format("data_batch_{}.bin", number); }
std::string Cifar10Format::test_file() { return "test_batch.bin"; }

DataSplits read_cifar10(const std::string& directory) {
  const fs::path folder = find_folder(directory);
  std::vector<uint8_t> train = read_train_files(folder), test;
  append_file(folder / Format::test_file(), test);
  const std::string name = name_of(folder, train.size(), test.size());
  const std::vector<std::string> class_names = read_class_names(folder);
  return {.train = std::make_shared<Cifar10>(name, class_names, std::move(train)),
          .test = std::make_shared<Cifar10>(name, class_names, std::move(test))};
}

}  // namespace antichain
