// Tests JPEG and PNG files: they are decoded, resized, and refused by name where they are damaged.
#include "data/image_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <numeric>
#include <optional>

#include "data/hdf5_set.h"
#include "data/image_folder.h"
#include "data/pack.h"
#include "framework/error.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// A Python program that makes image files, and what another decoder (Pillow) reads from them: NAME.rgb holds
// "H W\n" and the bytes.
constexpr const char* make_images = R"(
import numpy as np, os
from PIL import Image, ImageOps, PngImagePlugin
y, x = np.mgrid[0:24, 0:40]
rgb = np.stack([x * 6, y * 10, (x * 3 + y * 5) % 256], -1).astype(np.uint8)
def keep(name, image, saved=None, **how):
    image.save(name, **how)
    seen = saved if saved is not None else ImageOps.exif_transpose(Image.open(name))
    if seen.mode in ("RGBA", "LA") or "transparency" in seen.info:
        seen = Image.alpha_composite(Image.new("RGBA", seen.size, "black"), seen.convert("RGBA"))
    seen = seen.convert("RGB")
    with open(name + ".rgb", "wb") as f:
        f.write(b"%d %d\n" % (seen.height, seen.width)); f.write(seen.tobytes())
colour = Image.fromarray(rgb)
keep("rgb.png", colour)
keep("grey.png", colour.convert("L"))
keep("palette.png", colour.quantize(16))
keep("bits.png", colour.convert("1"))
alpha = (x * 6).astype(np.uint8)
keep("alpha.png", Image.fromarray(np.dstack([rgb, alpha])))
keep("grey_alpha.png", Image.fromarray(np.dstack([rgb[..., 0], alpha])))
keep("palette_alpha.png", colour.quantize(16), transparency=bytes(range(0, 256, 16)))
keep("one_colour.png", colour, transparency=(0, 0, 0))
for gamma in (45455, 100000):
    info = PngImagePlugin.PngInfo(); info.add(b"gAMA", gamma.to_bytes(4, "big"))
    keep("gamma%d.png" % gamma, colour, pnginfo=info)
    keep("gamma%d_alpha.png" % gamma, Image.fromarray(np.dstack([rgb, alpha])), pnginfo=info)
deep = (x * 1600 + 7).astype(np.uint16)
shallow = ((deep + 128) // 257).astype(np.uint8)
keep("deep.png", Image.fromarray(deep), Image.fromarray(np.repeat(shallow[..., None], 3, 2)))
keep("rgb.jpg", colour, quality=90)
keep("grey.jpg", colour.convert("L"))
keep("progressive.jpg", colour, progressive=True)
keep("cmyk.jpg", colour.convert("CMYK"))
for o in range(1, 9):
    exif = Image.Exif(); exif[0x0112] = o
    keep("turned%d.jpg" % o, colour, exif=exif)
keep("png_as.jpg", colour, format="PNG")
for name, size in (("smaller", (8, 8)), ("taller", (10, 30)), ("larger", (100, 60)), ("wide", (40, 8))):
    fit = ImageOps.fit(colour, size, Image.BILINEAR)
    with open(name + ".fit", "wb") as f:
        f.write(b"%d %d\n" % (fit.height, fit.width)); f.write(fit.tobytes())
)";

Image expected(const std::string& file) {
  const std::string text = read_file(file);
  Image image;
  int used = 0;
  std::sscanf(text.c_str(), "%d %d%n", &image.height, &image.width, &used);
  image.pixels.assign(text.begin() + used + 1, text.end());
  return image;
}

void expect_equal(const Image& got, const Image& wanted, int tolerance, const std::string& what) {
  ASSERT_EQ(got.height, wanted.height) << what;
  ASSERT_EQ(got.width, wanted.width) << what;
  ASSERT_EQ(got.pixels.size(), wanted.pixels.size()) << what;
  int worst = 0;
  for (size_t i = 0; i < got.pixels.size(); ++i)
    worst = std::max(worst, std::abs(int(got.pixels[i]) - int(wanted.pixels[i])));
  EXPECT_LE(worst, tolerance) << what;
}

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path() / "make.py") << make_images;
    const std::string command = "cd " + folder_.str() + " && /usr/bin/python3 make.py 2>/dev/null";
    if (std::system("/usr/bin/python3 -c 'import PIL, numpy' 2>/dev/null") != 0)
      GTEST_SKIP() << "Pillow, which makes the images, is not installed";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::string file(const std::string& name) const { return folder_.str() + "/" + name; }
  const TemporaryFolder folder_;
};

TEST_F(Images, AreReadAsAnotherDecoderReadsThem) {
  for (const char* name : {"rgb.png", "grey.png", "palette.png", "bits.png", "alpha.png", "grey_alpha.png",
                           "palette_alpha.png", "one_colour.png", "gamma45455.png", "gamma100000.png",
                           "gamma45455_alpha.png", "gamma100000_alpha.png", "png_as.jpg"})
    expect_equal(read_image(file(name)), expected(file(name) + ".rgb"), 0, name);
  expect_equal(read_image(file("deep.png")), expected(file("deep.png.rgb")), 1, "16 bits, rounded");
  // The same library, or one that is free to round an inverse transform by one level and a colour conversion
  // by one more.
  for (const char* name :
       {"rgb.jpg", "grey.jpg", "progressive.jpg", "turned1.jpg", "turned2.jpg", "turned3.jpg", "turned4.jpg",
        "turned5.jpg", "turned6.jpg", "turned7.jpg", "turned8.jpg"})
    expect_equal(read_image(file(name)), expected(file(name) + ".rgb"), 4, name);
  expect_equal(read_image(file("cmyk.jpg")), expected(file("cmyk.jpg.rgb")), 4, "cmyk.jpg");
}

TEST_F(Images, CutShortAreRefusedByName) {
  for (const char* name : {"rgb.png", "rgb.jpg", "progressive.jpg", "palette.png"}) {
    const std::string bytes = read_file(file(name));
    for (size_t part = 0; part < 8; ++part) {
      const std::string cut = bytes.substr(0, bytes.size() * part / 8);
      std::ofstream(file("cut"), std::ios::binary | std::ios::trunc) << cut;
      expect_error([&] { read_image(file("cut")); }, {file("cut"), "--skip-damaged"});
    }
  }
}

TEST_F(Images, AreResizedAsPillowDoes) {
  const Image colour = read_image(file("rgb.png"));
  for (const char* name : {"smaller", "taller", "larger", "wide"}) {
    const Image wanted = expected(file(std::string(name) + ".fit"));
    // Pillow rounds to bytes between the two directions, and its weights to 22 bits.
    expect_equal(resize(colour, wanted.height, wanted.width), wanted, 2, name);
  }
}

TEST(Resize, KeepsWhatIsFlatAndWhatHasTheSize) {
  Image image{.height = 5, .width = 7, .pixels = std::vector<uint8_t>(105, 200)};
  for (const auto& [h, w] : {std::pair(1, 1), std::pair(13, 2), std::pair(3, 40)}) {
    const Image other = resize(image, h, w);
    EXPECT_EQ(other.pixels, std::vector<uint8_t>(size_t(h * w * 3), 200));
  }
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t(0));
  EXPECT_EQ(resize(image, 5, 7).pixels, image.pixels);
}

TEST_F(Images, AFolderOfThemIsADataSet) {
  namespace fs = std::filesystem;
  const fs::path set = folder_.path() / "set";
  fs::create_directories(set / "b"), fs::create_directories(set / "a" / "deeper"),
      fs::create_directories(set / "one");
  for (int i = 0; i < 6; ++i) fs::copy_file(file("rgb.png"), set / "b" / ("i" + std::to_string(i) + ".PNG"));
  for (int i = 0; i < 3; ++i)
    fs::copy_file(file("rgb.jpg"), set / "a" / "deeper" / (std::to_string(i) + ".jpeg"));
  fs::copy_file(file("grey.png"), set / "one" / "x.png");
  std::ofstream(set / "a" / "notes.txt") << "no image";
  const FolderSet found = open_image_folder(set.string(), {.test_fraction = 0.34});
  const ImageSet &train = *found.splits.train, &test = *found.splits.test;
  EXPECT_EQ(train.name(), "set");
  ASSERT_EQ(train.classes(), 3);
  EXPECT_EQ(train.class_names()[0], "a");
  EXPECT_EQ(found.other_files, 1);
  EXPECT_EQ(train.size(), 2 + 4 + 1) << "a class of one image is trained on";
  EXPECT_EQ(test.size(), 1 + 2);
  EXPECT_EQ(train.image_shape(), (Shape{3, 24, 40}));
  pack(found.splits, file("set.h5"));
  const ImageSplits packed = read_hdf5_set(file("set.h5"));
  EXPECT_EQ(packed.train->class_names()[2], "one");
  for (int64_t i = 0; i < train.size(); ++i) {
    std::vector<uint8_t> a(24 * 40 * 3), b(a.size());
    train.image(i, a), packed.train->image(i, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(train.label(i), packed.train->label(i));
  }
  // Damaged ones are named, or left out.
  std::ofstream(set / "b" / "i3.PNG", std::ios::trunc) << "\x89PNG\r\n\x1a\n";
  expect_error(
      [&] { pack(open_image_folder(set.string(), {.height = 8, .width = 8}).splits, file("no.h5")); },
      {"i3.PNG", "damaged"});
  EXPECT_FALSE(fs::exists(file("no.h5")));
  const FolderSet skipped = open_image_folder(set.string(), {.height = 8, .width = 8, .skip_damaged = true});
  ASSERT_EQ(skipped.damaged.size(), 1u);
  EXPECT_NE(skipped.damaged[0].find("i3.PNG"), std::string::npos);
  EXPECT_EQ(skipped.splits.train->size() + skipped.splits.test->size(), 9);
  // Its size differs from the first one's.
  fs::copy_file(file("turned6.jpg"), set / "b" / "i3.PNG", fs::copy_options::overwrite_existing);
  expect_error([&] { pack(open_image_folder(set.string(), {}).splits, file("no.h5")); },
               {"i3.PNG", "40 x 24", "--size"});
}

// A PNG of 1 x 1, grey.
const std::vector<uint8_t> tiny_png = {
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3A, 0x7E, 0x9B, 0x55, 0x00,
    0x00, 0x00, 0x0A, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81,
    0x77, 0xCD, 0x72, 0xB6, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};

struct FolderCase {
  std::vector<std::string> files;  // images
  std::string result;              // "train images, test images: classes; notes", or the error's part
  std::optional<double> fraction = {};
};

std::string summary(const std::string& folder, const FolderCase& c) {
  const FolderSet found = open_image_folder(folder, {.test_fraction = c.fraction});
  std::string text = fmt::format("{}, {}: {}", found.splits.train->size(), found.splits.test->size(),
                                 fmt::join(found.splits.train->class_names(), " "));
  for (const std::string& note : found.notes) text += "; " + note;
  for (size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "S");
  return text;
}

TEST(ImageFolder, SplitsAreSplitsAndWhatSystemsLeaveIsNothing) {
  const std::vector<FolderCase> cases = {
      {{"a/1.png", "a/2.png", "b/1.png", "b/2.png"}, "2, 2: a b"},
      // splits
      {{"train/a/1.png", "train/b/1.png", "test/b/1.png"}, "2, 1: a b"},
      {{"Train/a/1.png", "Train/b/1.png", "TEST/b/1.png"}, "2, 1: a b"},
      {{"training/a/1.png", "training/b/1.png", "testing/a/1.png"}, "2, 1: a b"},
      {{"train/a/1.png", "train/b/1.png", "val/b/1.png"}, "2, 1: a b; S/val is for tests"},
      {{"train/a/1.png", "train/b/1.png", "Valid/b/1.png"}, "2, 1: a b; S/Valid is for tests"},
      {{"train/a/1.png", "train/b/1.png", "validation/b/1.png"}, "2, 1: a b; S/validation is for tests"},
      {{"train/a/1.png", "train/b/1.png", "val/b/1.png", "test/a/1.png"},
       "2, 1: a b; S/test is for tests, so S/val is left out; to test with that, pack a folder without test"},
      {{"train/a/1.png", "train/a/2.png", "train/b/1.png", "train/b/2.png"},
       "2, 2: a b; there is no test or val beside S/train: 0.1 of each class are for tests"},
      {{"train/a/1.png", "train/b/1.png", "test/b/1.png", "labels/a.txt"},
       "2, 1: a b; S/labels has no images: left out"},
      {{"test/a/1.png", "test/b/1.png"}, "S/test is a split without the folder train beside it"},
      {{"train/a/1.png", "val/a/1.png", "valid/a/1.png"}, "has the folders val and valid, which are names"},
      {{"train/1.png", "val/1.png"}, "S/train has no sub-folders"},
      {{"train/a/1.png", "test/a/1.png", "cat/1.png"}, "S/cat has images beside the split S/train"},
      {{"a/train/1.png", "a/test/1.png"}, "S/a/train is a split within a class"},
      {{"train/a/1.png", "train/b/1.png", "test/c/1.png"}, "S/test/c is a class that S/train has not"},
      {{"train/a/1.png", "test/a/1.png"}, "--test-fraction is given, but S/test has images for tests", 0.2},
      {{"train_set/a/1.png", "test_set/a/1.png"}, "S/train_set has folders, as a split has, but would be a"},
      {{"Training1/x/a/1.png", "Test1/x/a/1.png"}, "S/Training1 has folders"},
      {{"images-train/a/1.png", "images-train/b/1.png"}, "S/images-train has folders"},
      // a class that is called so
      {{"bus/1.png", "bus/2.png", "train/1.png", "train/2.png"}, "2, 2: bus train"},
      {{"trainers/x/1.png", "trainers/2.png", "train_red/1.png", "train_red/2.png"},
       "2, 2: train_red trainers"},
      // hidden things
      {{"a/1.png", "a/2.png", "b/1.png", "b/2.png", ".ipynb_checkpoints/x.png", ".git/x.png",
        "__MACOSX/a/x.png", "lost+found/x.png", "@eaDir/x.png", "a/.ipynb_checkpoints/x.png", "a/._1.png",
        "a/Thumbs.db", "a/.DS_Store", "b/@eaDir/1.png/x.png"},
       "2, 2: a b"},
      {{"train/a/1.png", "train/b/1.png", "test/b/1.png", ".val/b/1.png", "train/.x/1.png"}, "2, 1: a b"},
      // others
      {{"a/1.png", "a/2.png", "b/1.png", "b/2.png", "x.png"},
       "2, 2: a b; 1 image in S itself has no class: left out"},
      {{"a/1.png", "a/2.png"}, "1, 1: a; there is one class, 'a', so there is nothing to learn"}};
  for (const FolderCase& c : cases) {
    const TemporaryFolder folder;
    for (const std::string& file : c.files) write_bytes(folder.path() / file, tiny_png);
    std::string got;
    try {
      got = summary(folder.str(), c);
    } catch (const Error& error) {
      got = error.what();
      for (size_t at; (at = got.find(folder.str())) != std::string::npos;)
        got.replace(at, folder.str().size(), "S");
      got = got.find(c.result) == std::string::npos ? got : c.result;
    }
    EXPECT_EQ(got, c.result) << fmt::format("{}", fmt::join(c.files, " "));
  }
}

TEST(ImageFolder, AClassThatLosesAllItsImagesIsNamed) {
  const TemporaryFolder folder;
  for (const char* file : {"a/1.png", "a/2.png", "b/1.png", "b/2.png", "b/3.png"})
    write_bytes(folder.path() / file, tiny_png);
  for (const char* file : {"a/1.png", "a/2.png"}) write_bytes(folder.path() / file, {1});
  const FolderSet found = open_image_folder(folder.str(), {.skip_damaged = true});
  EXPECT_EQ(found.damaged.size(), 2u);
  EXPECT_EQ(found.notes, (std::vector<std::string>{"no image of the class 'a' is left to train on"}));
}

TEST(ImageFolder, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  expect_error([] { open_image_folder("/nowhere", {}); }, {"/nowhere"});
  expect_error([&] { open_image_folder(folder.str(), {}); }, {folder.str(), "no sub-folders"});
  std::filesystem::create_directories(folder.path() / "a");
  expect_error([&] { open_image_folder(folder.str(), {}); }, {folder.str() + "/a", "no images"});
  std::filesystem::create_symlink("nowhere", folder.path() / "b");
  expect_error([&] { open_image_folder(folder.str(), {}); }, {folder.str() + "/b is a link to nothing"});
  std::filesystem::remove(folder.path() / "b");
  ASSERT_EQ(mkfifo((folder.path() / "a/1.png").c_str(), 0600), 0);
  expect_error([&] { open_image_folder(folder.str(), {}); }, {"a/1.png is a pipe or a device"});
}

}  // namespace
}  // namespace antichain
