#include "data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "data/image_file.h"
#include "data/sampler.h"
#include "framework/error.h"
#include "framework/paths.h"

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

class FolderSplit : public ImageSet {
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
  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    for (const ImageFile& file : files_) all.push_back(file.path);
    return all;
  }
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

std::string lower(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Folders and files that systems and programs leave everywhere: they are no classes, no splits and no images.
bool is_left_behind(const fs::path& path) {
  static const std::array<std::string, 6> names = {"$recycle.bin", "@eadir",     "__macosx",
                                                   "desktop.ini",  "lost+found", "thumbs.db"};
  const std::string name = lower(path.filename().string());
  return name.starts_with('.') || std::ranges::find(names, name) != names.end();
}

std::vector<fs::path> sorted(auto begin, auto&& wanted) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : begin)
    if (wanted(entry)) paths.push_back(entry.path());
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.string(); });
  return paths;
}

// Returns the names of the folders in a folder.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::error_code failed;
  fs::directory_iterator begin(folder, failed);
  if (failed)
    throw Error(fmt::format("can't read the folder {} ({})", folder.string(), failed.message()),
                "give a folder with one sub-folder of images per class");
  std::vector<std::string> names;
  for (const fs::path& path : sorted(begin, [](const fs::directory_entry& entry) {
         std::error_code none;
         return entry.is_directory(none) && !is_left_behind(entry.path());
       }))
    names.push_back(path.filename().string());
  return names;
}

// A link that leads to nothing may have been a class.
std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> names = folders_in(folder);
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (!entry.exists(none) && !is_left_behind(entry.path()))
      throw Error(entry.path().string() + " is a link to nothing", "mend or remove the link");
  if (names.empty())
    throw Error(folder.string() + " has no sub-folders", "there is one sub-folder of images per class");
  return names;
}

bool looks_like_an_image(const fs::path& path) {
  const std::string ending = lower(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// Returns all files below a folder, by name.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed, none;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink, failed), end;
  for (; !failed && at != end; at.increment(failed)) {
    if (is_left_behind(at->path()))
      at.disable_recursion_pending();
    else if (at->is_symlink(none) && at->is_directory(none) &&
             is_within(at->path().string(), at->path().string()))
      throw Error(
          fmt::format("{} is a link to a folder that it lies in, which would give each image again and "
                      "again",
                      at->path().string()),
          "remove the link");
    else if (at->is_other(none) && looks_like_an_image(at->path()))
      throw Error(at->path().string() + " is a pipe or a device, not an image", "move it away");
    else if (!at->is_directory(none))  // a link to nothing is found when it is read
      files.push_back(at->path());
  }
  if (failed)
    throw Error(fmt::format("can't read all of the folder {} ({})", folder.string(), failed.message()),
                "make it readable, or move it away");
  std::ranges::sort(files, {}, [](const fs::path& path) { return path.string(); });
  return files;
}

// Returns the images of one class, by name; `others` counts the other files.
std::vector<ImageFile> images_of(const fs::path& folder, int label, int64_t& others) {
  std::vector<ImageFile> images;
  for (const fs::path& file : files_below(folder)) {
    if (looks_like_an_image(file))
      images.push_back({file.string(), label});
    else
      ++others;
  }
  if (images.empty()) throw Error(folder.string() + " has no images", "its files end in .jpg, .jpeg or .png");
  return images;
}

bool has_images(const fs::path& folder) {
  return std::ranges::any_of(files_below(folder), looks_like_an_image);
}

struct FileLists {
  std::vector<std::string> class_names;
  std::vector<ImageFile> train, test;
  int64_t others = 0;
};

// The folders of a set's splits, by the names that they usually have.
struct SplitFolders {
  std::string train, val, test;     // "": there is none
  std::vector<std::string> beside;  // other folders
  const std::string& first() const { return !train.empty() ? train : !val.empty() ? val : test; }
  bool any() const { return !first().empty(); }
};

SplitFolders find_splits(const fs::path& folder) {
  SplitFolders found;
  struct Kind {
    std::string& name;
    std::vector<std::string> usual;
  };
  const Kind kinds[] = {{found.train, {"train", "training"}},
                        {found.val, {"val", "valid", "validation"}},
                        {found.test, {"test", "testing"}}};
  for (const std::string& name : folders_in(folder)) {
    const auto kind = std::ranges::find_if(
        kinds, [&](const Kind& k) { return std::ranges::find(k.usual, lower(name)) != k.usual.end(); });
    if (kind == std::end(kinds)) {
      found.beside.push_back(name);
      continue;
    }
    if (!kind->name.empty())
      throw Error(fmt::format("{} has the folders {} and {}, which are names of one split", folder.string(),
                              kind->name, name),
                  "put their images into one folder");
    kind->name = name;
  }
  return found;
}

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

// Returns whether a name has a word for training in it, as train_set, images-train and Training1 have. It may
// be that of a split.
bool names_training(const std::string& name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (auto at = name.begin(); at != name.end();) {
    const auto begin = std::find_if(at, name.end(), is_letter);
    at = std::find_if_not(begin, name.end(), is_letter);
    const std::string word = lower({begin, at});
    if (word == "train" || word == "training" || word == "trainset" || word == "trainval") return true;
  }
  return false;
}

FileLists list_one_folder(const fs::path& folder, double test_fraction) {
  FileLists lists{.class_names = class_folders(folder)};
  for (size_t label = 0; label < lists.class_names.size(); ++label) {
    const fs::path of_class = folder / lists.class_names[label];
    if (const SplitFolders splits = find_splits(of_class); splits.any())
      throw Error(fmt::format("{} is a split within a class", (of_class / splits.first()).string()),
                  "splits are above classes, as in train/cat: move or rename it");
    if (names_training(lists.class_names[label]) && !folders_in(of_class).empty())
      throw Error(of_class.string() + " has folders, as a split has, but would be a class by its name",
                  "rename the splits to train, val and test, or the class");
    share_out(images_of(of_class, int(label), lists.others), int(label), test_fraction, lists);
  }
  return lists;
}

FileLists list_splits(const fs::path& train, const fs::path& test) {
  FileLists lists{.class_names = class_folders(train)};
  for (size_t label = 0; label < lists.class_names.size(); ++label)
    std::ranges::move(images_of(train / lists.class_names[label], int(label), lists.others),
                      std::back_inserter(lists.train));
  for (const std::string& name : class_folders(test)) {
    const auto known = std::ranges::find(lists.class_names, name);
    if (known == lists.class_names.end())
      throw Error(fmt::format("{} is a class that {} has not", (test / name).string(), train.string()),
                  "test what is trained");
    std::ranges::move(images_of(test / name, int(known - lists.class_names.begin()), lists.others),
                      std::back_inserter(lists.test));
  }
  return lists;
}

// Whether the names of splits are those of classes here: a class of trains, say, among cars and buses.
bool are_classes(const fs::path& folder, const SplitFolders& splits) {
  const auto is_class = [&](const std::string& name) {
    return name.empty() || folders_in(folder / name).empty();
  };
  const bool alone =
      std::ranges::none_of(splits.beside, [&](const std::string& name) { return has_images(folder / name); });
  return !alone && is_class(splits.train) && is_class(splits.val) && is_class(splits.test);
}

void note_loose_images(const fs::path& folder, std::vector<std::string>& notes) {
  std::error_code failed;
  int64_t loose = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    loose += looks_like_an_image(entry.path()) && !is_left_behind(entry.path());
  if (loose > 0)
    notes.push_back(fmt::format("{} image{} in {} itself {} no class: left out", loose, loose == 1 ? "" : "s",
                                folder.string(), loose == 1 ? "has" : "have"));
}

// Returns the images of both splits, and says in `notes` what became of each folder.
FileLists list_files(const fs::path& folder, const FolderOptions& options, std::vector<std::string>& notes) {
  const SplitFolders splits = find_splits(folder);
  const std::string &train = splits.train, &val = splits.val;
  const double fraction = options.test_fraction.value_or(0.1);
  note_loose_images(folder, notes);
  if (!splits.any() || are_classes(folder, splits)) return list_one_folder(folder, fraction);
  const auto in = [&](const std::string& name) { return (folder / name).string(); };
  for (const std::string& name : splits.beside) {
    if (has_images(folder / name))
      throw Error(fmt::format("{} has images beside the split {}", in(name), in(splits.first())),
                  "a folder has either classes or splits (train, val, test): move or rename one");
    notes.push_back(in(name) + " has no images: left out");
  }
  if (train.empty())
    throw Error(fmt::format("{} is a split without the folder train beside it", in(splits.first())),
                "name the folder of its classes itself to share it out, or add train");
  if (val.empty() && splits.test.empty()) {
    notes.push_back(fmt::format("there is no test or val beside {}: {:g} of each class are for tests",
                                in(train), fraction));
    note_loose_images(folder / train, notes);
    return list_one_folder(folder / train, fraction);
  }
  if (options.test_fraction)
    throw Error(fmt::format("--test-fraction is given, but {} has images for tests",
                            in(splits.test.empty() ? val : splits.test)),
                "leave it out", ExitCode::usage);
  if (splits.test.empty()) {
    notes.push_back(in(val) + " is for tests");
  } else if (!val.empty()) {
    notes.push_back(
        fmt::format("{} is for tests, so {} is left out; to test with that, pack a folder without {}",
                    in(splits.test), in(val), splits.test));
  }
  const fs::path for_tests = folder / (splits.test.empty() ? val : splits.test);
  note_loose_images(folder / train, notes), note_loose_images(for_tests, notes);
  return list_splits(folder / train, for_tests);
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

void note_missing_classes(const FileLists& lists, std::vector<std::string>& notes) {
  const auto& names = lists.class_names;
  for (size_t label = 0; label < names.size(); ++label)
    if (std::ranges::find(lists.train, int(label), &ImageFile::label) == lists.train.end())
      notes.push_back(fmt::format("no image of the class '{}' is left to train on", names[label]));
  if (names.size() == 1)
    notes.push_back(fmt::format("there is one class, '{}', so there is nothing to learn", names[0]));
}

}  // namespace

FolderSet open_image_folder(const std::string& name, const FolderOptions& options) {
  const fs::path folder(name);
  FolderSet result;
  FileLists lists = list_files(folder, options, result.notes);
  result.other_files = lists.others;
  if (options.skip_damaged) {
    DamageCheck check(options, lists.train.size() + lists.test.size());
    check.run(lists.train, result.damaged);
    check.run(lists.test, result.damaged);
  }
  for (const auto& [files, what] :
       {std::pair(&lists.train, "train on"), std::pair(&lists.test, "test with")}) {
    if (files->empty())
      throw Error(fmt::format("{} has no images to {}", name, what),
                  "add images, or give another --test-fraction");
  }
  note_missing_classes(lists, result.notes);
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
