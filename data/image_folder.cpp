#include "data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "data/image_file.h"
#include "data/resize.h"
#include "data/sampler.h"
#include "framework/error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

struct ImageFile {
  std::string path;
  int label;
};
struct ImageSize {
  int height, width;
};

class FolderSplit : public DataSet {
 public:
  FolderSplit(std::string name, std::vector<std::string> class_names, std::vector<ImageFile> files,
              ImageSize size, bool resizes)
      : name_(std::move(name)),
        class_names_(std::move(class_names)),
        files_(std::move(files)),
        size_(size),
        resizes_(resizes) {}
  std::string name() const override { return name_; }
  int64_t size() const override { return int64_t(files_.size()); }
  Shape image_shape() const override { return {3, size_.height, size_.width}; }
  std::span<const std::string> class_names() const override { return class_names_; }
  int label(int64_t index) const override { return files_.at(size_t(index)).label; }
  void image(int64_t index, std::span<uint8_t> out) const override {
    const std::string& path = files_.at(size_t(index)).path;
    Image image = read_image(path);
    if (resizes_) image = resize(image, size_.height, size_.width);
    if (image.height != size_.height || image.width != size_.width)
      throw Error(fmt::format("{} has {} x {} pixels, but the first image has {} x {}", path, image.height,
                              image.width, size_.height, size_.width),
                  "say with --size what all are brought to");
    const size_t plane = image.pixels.size() / 3;
    ANTICHAIN_CHECK(out.size() == image.pixels.size(), "an image needs a buffer of its own size");
    for (size_t c = 0; c < 3; ++c)
      for (size_t p = 0; p < plane; ++p) out[c * plane + p] = image.pixels[3 * p + c];
  }

 private:
  std::string name_;
  std::vector<std::string> class_names_;
  std::vector<ImageFile> files_;
  ImageSize size_;
  bool resizes_;
};

std::vector<fs::path> sorted(auto begin, auto&& wanted) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : begin)
    if (wanted(entry)) paths.push_back(entry.path());
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.string(); });
  return paths;
}

std::vector<std::string> class_folders(const fs::path& folder) {
  std::error_code failed;
  fs::directory_iterator begin(folder, failed);
  if (failed)
    throw Error(fmt::format("can't read the folder {} ({})", folder.string(), failed.message()),
                "give a folder with one sub-folder of images per class");
  std::vector<std::string> names;
  for (const fs::path& path : sorted(begin, [](const fs::directory_entry& entry) {
         std::error_code ignored;
         return entry.is_directory(ignored);
       }))
    names.push_back(path.filename().string());
  if (names.empty())
    throw Error(folder.string() + " has no sub-folders", "there is one sub-folder of images per class");
  return names;
}

bool looks_like_an_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = char(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// Returns the images of one class, by name; `others` counts the other files.
std::vector<ImageFile> images_of(const fs::path& folder, int label, int64_t& others) {
  const auto files = sorted(fs::recursive_directory_iterator(folder), [](const fs::directory_entry& entry) {
    std::error_code none;  // a link that leads nowhere is a file that can't be read
    return entry.is_regular_file(none) || !entry.exists(none);
  });
  std::vector<ImageFile> images;
  for (const fs::path& file : files) {
    if (looks_like_an_image(file))
      images.push_back({file.string(), label});
    else
      ++others;
  }
  if (images.empty()) throw Error(folder.string() + " has no images", "its files end in .jpg, .jpeg or .png");
  return images;
}

struct FileLists {
  std::vector<std::string> class_names;
  std::vector<ImageFile> train, test;
  int64_t others = 0;
};

// Draws the split as the order of an epoch is drawn: every class gives its share, in its own order.
void share_out(std::vector<ImageFile> files, int label, double fraction, FileLists& lists) {
  const auto count = int64_t(files.size());
  int64_t tests = std::min(int64_t(fraction * double(count)), count - 1);
  if (tests == 0 && count >= 2 && fraction > 0) tests = 1;
  std::vector<bool> for_tests(files.size());
  const std::vector<int64_t> order = permutation(count, 0, label);
  for (int64_t i = 0; i < tests; ++i) for_tests[size_t(order[size_t(i)])] = true;
  for (size_t i = 0; i < files.size(); ++i)
    (for_tests[i] ? lists.test : lists.train).push_back(std::move(files[i]));
}

FileLists list_one_folder(const fs::path& folder, double test_fraction) {
  FileLists lists{.class_names = class_folders(folder)};
  for (size_t label = 0; label < lists.class_names.size(); ++label)
    share_out(images_of(folder / lists.class_names[label], int(label), lists.others), int(label),
              test_fraction, lists);
  return lists;
}

FileLists list_splits(const fs::path& folder) {
  FileLists lists{.class_names = class_folders(folder / "train")};
  for (size_t label = 0; label < lists.class_names.size(); ++label)
    std::ranges::move(images_of(folder / "train" / lists.class_names[label], int(label), lists.others),
                      std::back_inserter(lists.train));
  for (const std::string& name : class_folders(folder / "test")) {
    const auto known = std::ranges::find(lists.class_names, name);
    if (known == lists.class_names.end())
      throw Error(fmt::format("{} is a class that {} has not", (folder / "test" / name).string(),
                              (folder / "train").string()),
                  "test what is trained");
    std::ranges::move(images_of(folder / "test" / name, int(known - lists.class_names.begin()), lists.others),
                      std::back_inserter(lists.test));
  }
  return lists;
}

// Leaves out files that can't be decoded, or whose size differs from the first that can.
class DamageCheck {
 public:
  DamageCheck(const FolderOptions& options, size_t total) : options_(options), total_(int64_t(total)) {}
  void run(std::vector<ImageFile>& files, std::vector<std::string>& damaged) {
    std::erase_if(files, [&](const ImageFile& file) {
      options_.progress(++done_, total_);
      try {
        read_image(file.path);
        return false;
      } catch (const Error& error) {
        damaged.push_back(error.what());
        return true;
      }
    });
  }

 private:
  const FolderOptions& options_;
  int64_t done_ = 0, total_;
};

}  // namespace

FolderSet open_image_folder(const std::string& name, const FolderOptions& options) {
  const fs::path folder(name);
  std::error_code ignored;
  const bool has_splits =
      fs::is_directory(folder / "train", ignored) && fs::is_directory(folder / "test", ignored);
  FileLists lists = has_splits ? list_splits(folder) : list_one_folder(folder, options.test_fraction);
  FolderSet result{.splits = {}, .other_files = lists.others, .damaged = {}};
  if (options.skip_damaged) {
    DamageCheck check(options, lists.train.size() + lists.test.size());
    check.run(lists.train, result.damaged);
    check.run(lists.test, result.damaged);
  }
  for (const auto& [files, what] :
       {std::pair(&lists.train, "train on"), std::pair(&lists.test, "test with")}) {
    if (files->empty())
      throw Error(
          fmt::format("{} has no images to {}", name, what),
          has_splits ? "put images into both train and test" : "add images, or give another --test-fraction");
  }
  const bool resizes = options.height > 0;
  ImageSize size{options.height, options.width};
  if (!resizes) {
    const Image first = read_image(lists.train.front().path);
    size = {first.height, first.width};
  }
  const std::string set_name =
      fs::path(fs::absolute(folder).lexically_normal() / ".").parent_path().filename().string();
  result.splits.train =
      std::make_shared<FolderSplit>(set_name, lists.class_names, std::move(lists.train), size, resizes);
  result.splits.test =
      std::make_shared<FolderSplit>(set_name, lists.class_names, std::move(lists.test), size, resizes);
  return result;
}

}  // namespace antichain
