// Tests JPEG and PNG files: they are decoded, resized, and refused by name where they are damaged.
#include "data/image_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "data/hdf5_set.h"
#include "data/image_folder.h"
#include "data/pack.h"
#include "data/resize.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// A Python program that makes image files, and what another decoder (Pillow) reads from them: NAME.rgb holds
// "H W\n" and the bytes.
constexpr const char* make_images = R"(
import numpy as np, os
from PIL import Image, ImageOps
y, x = np.mgrid[0:24, 0:40]
rgb = np.stack([x * 6, y * 10, (x * 3 + y * 5) % 256], -1).astype(np.uint8)
def keep(name, image, saved=None, **how):
    image.save(name, **how)
    seen = saved if saved is not None else ImageOps.exif_transpose(Image.open(name)).convert("RGB")
    with open(name + ".rgb", "wb") as f:
        f.write(b"%d %d\n" % (seen.height, seen.width)); f.write(seen.tobytes())
colour = Image.fromarray(rgb)
keep("rgb.png", colour)
keep("grey.png", colour.convert("L"))
keep("palette.png", colour.quantize(16))
keep("bits.png", colour.convert("1"))
alpha = np.where(x < 20, 255, 0).astype(np.uint8)
keep("alpha.png", Image.fromarray(np.dstack([rgb, alpha])), Image.fromarray(rgb * (alpha[..., None] // 255)))
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
  for (const char* name : {"rgb.png", "grey.png", "palette.png", "bits.png", "alpha.png", "png_as.jpg"})
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
  const DataSet &train = *found.splits.train, &test = *found.splits.test;
  EXPECT_EQ(train.name(), "set");
  ASSERT_EQ(train.classes(), 3);
  EXPECT_EQ(train.class_names()[0], "a");
  EXPECT_EQ(found.other_files, 1);
  EXPECT_EQ(train.size(), 2 + 4 + 1) << "a class of one image is trained on";
  EXPECT_EQ(test.size(), 1 + 2);
  EXPECT_EQ(train.image_shape(), (Shape{3, 24, 40}));
  pack(found.splits, file("set.h5"));
  const DataSplits packed = read_hdf5_set(file("set.h5"));
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

TEST_F(Images, FoldersForTrainingAndTestsStayApart) {
  namespace fs = std::filesystem;
  for (const char* place : {"train/a", "train/b", "test/b"}) {
    fs::create_directories(folder_.path() / "set" / place);
    fs::copy_file(file("rgb.png"), folder_.path() / "set" / place / "x.png");
  }
  const FolderSet found = open_image_folder(file("set"), {});
  EXPECT_EQ(found.splits.train->size(), 2);
  ASSERT_EQ(found.splits.test->size(), 1);
  EXPECT_EQ(found.splits.test->label(0), 1);
  fs::create_directories(folder_.path() / "set/test/c");
  expect_error([&] { open_image_folder(file("set"), {}); }, {"test/c", "has not"});
}

TEST(ImageFolder, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  expect_error([] { open_image_folder("/nowhere", {}); }, {"/nowhere"});
  expect_error([&] { open_image_folder(folder.str(), {}); }, {folder.str(), "no sub-folders"});
  std::filesystem::create_directories(folder.path() / "a");
  expect_error([&] { open_image_folder(folder.str(), {}); }, {folder.str() + "/a", "no images"});
}

}  // namespace
}  // namespace antichain
