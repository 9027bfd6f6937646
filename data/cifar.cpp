#include "data/cifar.h"

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

std::string layout_hint(const PublishedSet& set) {
  const std::string& first = set.train_files.front();
  const std::string to = set.train_files.size() > 1 ? " … " + set.train_files.back() : "";
  return fmt::format("expected the official binary layout: {}{} and {}", first, to, set.test_file);
}

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

class Cifar : public ImageSet {
 public:
  Cifar(const PublishedSet& set, std::string name, std::vector<std::string> class_names, Records records)
      : set_(set),
        name_(std::move(name)),
        class_names_(std::move(class_names)),
        records_(std::move(records)) {}

  uint64_t contents() const override { return records_.hash.value(); }
  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(records_.labels.size()); }
  Shape image_shape() const override { return {3, PublishedSet::side, PublishedSet::side}; }
  std::span<const std::string> class_names() const override { return class_names_; }
  Normalisation normalisation() const override { return set_.normalisation; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    ANTICHAIN_CHECK(int64_t(out.size()) == PublishedSet::pixel_bytes,
                    "an image needs a buffer of its own size");
    ANTICHAIN_CHECK(index >= 0 && index < size(), "an image index within the data set");
    const auto next = std::ranges::upper_bound(records_.parts, index, {}, &Part::first);
    const Part& part = *std::prev(next);
    const int64_t record = index - part.first;
    part.file->read(record * set_.record_bytes() + set_.label_bytes(), out, record);
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
  const PublishedSet& set_;
  std::string name_;
  std::vector<std::string> class_names_;
  Records records_;
};

bool is_archive(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".tar.gz") || name.ends_with(".tgz") || name.ends_with(".tar");
}

// Returns whether this is the set's archive, or the set or its first file in a form other than the binary.
bool is_another_form(const PublishedSet& set, const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.filename().string();
  if (is_archive(path)) return name.starts_with(set.other_forms);
  if (fs::is_directory(path, ignored)) return name.starts_with(set.other_forms) && name != set.folder;
  return path.stem() == fs::path(set.train_files.front()).stem() && path.extension() != ".bin";
}

[[noreturn]] void refuse_another_form(const PublishedSet& set, const fs::path& found) {
  if (is_archive(found))
    throw Error(found.string() + " is an archive that is not unpacked",
                "unpack it by tar -xf, and name the folder where you do that");
  throw Error(
      fmt::format("{} is {}'s version for Python or Matlab, not the binary one", found.string(), set.name),
      fmt::format("unpack {}, and name the folder where you do that", set.url));
}

// Throws an Error that names what a folder has in place of a set's binary files, if it has such a thing.
void look_for_another_form(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> paths{folder};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths)
    for (const PublishedSet& set : published_sets())
      if (is_another_form(set, path)) refuse_another_form(set, path);
}

// Returns the folder with the files.
fs::path find_folder(const PublishedSet& set, const std::string& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    if (fs::exists(directory, ignored) && is_archive(directory)) refuse_another_form(set, directory);
    throw Error("no such data folder: " + directory, layout_hint(set));
  }
  const PublishedSet& found = published_set_in(directory, set);
  if (&found != &set)
    throw Error(fmt::format("{} has the files of {}, not of {}", directory, found.name, set.name),
                fmt::format("say --dataset {}, or name another folder", found.option), ExitCode::usage);
  const fs::path folder = folder_of(set, directory);
  if (fs::symlink_status(folder / set.train_files.front(), ignored).type() == fs::file_type::not_found)
    look_for_another_form(folder);
  return folder;
}

void check_label(const WatchedFile& file, int64_t record, const char* which, int label, int classes) {
  if (label < classes) return;
  throw Error(fmt::format("{}: record {} has {} {}, but labels are 0 to {}", file.path(), record, which,
                          label, classes - 1),
              "the file is damaged or of another data set");
}

// Reads the whole file once, block by block: it is better to find unreadable files before training than after
// an hour.
void append_records(const PublishedSet& set, const WatchedFile& file, Records& all) {
  constexpr int64_t block_records = 512;
  const int64_t record_bytes = set.record_bytes();
  std::vector<uint8_t> block(size_t(block_records * record_bytes));
  const int64_t records = file.bytes() / record_bytes;
  for (int64_t first = 0; first < records; first += block_records) {
    const int64_t count = std::min(block_records, records - first);
    file.read(first * record_bytes, {block.data(), size_t(count * record_bytes)}, first);
    all.hash.add({reinterpret_cast<const char*>(block.data()), size_t(count * record_bytes)});
    for (int64_t r = 0; r < count; ++r) {
      const uint8_t* labels = block.data() + r * record_bytes;
      if (set.groups > 0) check_label(file, first + r, "coarse label", labels[0], set.groups);
      const uint8_t label = labels[set.label_bytes() - 1];
      check_label(file, first + r, "label", label, set.classes);
      all.labels.push_back(label);
    }
  }
}

void append_file(const PublishedSet& set, const fs::path& path, Records& records) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) {
    throw Error(
        fmt::format("can't read {} ({})", path.string(), failed ? failed.message() : "it is no plain file"),
        layout_hint(set));
  }
  auto file = std::make_unique<WatchedFile>(path.string());
  if (file->bytes() == 0 || file->bytes() % set.record_bytes() != 0) {
    throw Error(fmt::format("{} is truncated: {} bytes, not a multiple of the {} bytes of a record",
                            path.string(), file->bytes(), set.record_bytes()),
                "fetch or unpack the data set again");
  }
  const auto first = int64_t(records.labels.size());
  append_records(set, *file, records);
  records.parts.push_back({std::move(file), first});
}

Records read_train_files(const PublishedSet& set, const fs::path& folder) {
  Records records;
  append_file(set, folder / set.train_files.front(), records);
  bool ended = false;  // a subset may lack the last files, but none before one that is there
  for (size_t i = 1; i < set.train_files.size(); ++i) {
    const fs::path file = folder / set.train_files[i];
    if (std::error_code none; fs::status(file, none).type() == fs::file_type::not_found) {
      ended = true;
    } else if (ended) {
      throw Error(fmt::format("{} is missing though {} is there", (folder / set.train_files[i - 1]).string(),
                              set.train_files[i]),
                  "fetch or unpack the data set again");
    } else {
      append_file(set, file, records);
    }
  }
  return records;
}

std::vector<std::string> read_class_names(const PublishedSet& set, const fs::path& folder) {
  std::vector<std::string> names;
  std::ifstream in(folder / set.names_file);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(printable(line));
  }
  if (int(names.size()) == set.classes) return names;
  names.clear();  // absent or foreign: the numbers will do
  for (int label = 0; label < set.classes; ++label) names.push_back(fmt::format("class {}", label));
  return names;
}

std::string name_of(const PublishedSet& set, const fs::path& folder, size_t train_images,
                    size_t test_images) {
  if (std::error_code none; fs::exists(folder / generated_marker, none))
    return fmt::format("generated (not {})", set.name);
  const bool whole = int64_t(train_images) == set.train_images && int64_t(test_images) == set.test_images;
  return std::string(set.name) + (whole ? "" : " (a subset)");
}

}  // namespace

ImageSplits read_cifar(const PublishedSet& set, const std::string& directory) {
  const fs::path folder = find_folder(set, directory);
  Records train = read_train_files(set, folder), test;
  append_file(set, folder / set.test_file, test);
  const std::string name = name_of(set, folder, train.labels.size(), test.labels.size());
  const std::vector<std::string> class_names = read_class_names(set, folder);
  return {.train = std::make_shared<Cifar>(set, name, class_names, std::move(train)),
          .test = std::make_shared<Cifar>(set, name, class_names, std::move(test))};
}

}  // namespace antichain
