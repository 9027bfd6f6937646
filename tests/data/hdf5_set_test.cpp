// Tests HDF5 data sets: both layouts read alike, and what is wrong in a file is refused by name.
#include "data/hdf5_set.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "data/channels.h"
#include "data/cifar.h"
#include "data/loader.h"
#include "data/pack.h"
#include "framework/files/hdf5_arrays.h"
#include "tests/another_second.h"
#include "tests/data/image_of.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// Content describes a file; tests spoil one thing each.
struct Content {
  std::vector<int64_t> train_shape{5, 3, 4, 6}, test_shape{2, 3, 4, 6};
  std::vector<int64_t> train_labels{0, 1, 2, 1, 0}, test_labels{2, 2};
  std::vector<Attribute> attributes;
  ArrayType image_type = ArrayType::u8;
  bool compressed = false, with_test = true;
};

std::vector<std::byte> numbered(int64_t bytes) {
  std::vector<std::byte> values(static_cast<size_t>(bytes));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::byte(i * 7 % 251);
  return values;
}

std::string write(const TemporaryFolder& folder, const Content& c) {
  const std::string file = folder.str() + "/set.h5";
  std::vector<ArraySpec> specs{
      {.path = "train/images", .shape = c.train_shape, .type = c.image_type, .compressed = c.compressed},
      {.path = "train/labels", .shape = {int64_t(c.train_labels.size())}, .type = ArrayType::i64}};
  if (c.with_test) {
    specs.push_back(
        {.path = "test/images", .shape = c.test_shape, .type = c.image_type, .compressed = c.compressed});
    specs.push_back(
        {.path = "test/labels", .shape = {int64_t(c.test_labels.size())}, .type = ArrayType::i64});
  }
  ArrayWriter writer(file, specs);
  for (const Attribute& attribute : c.attributes) writer.set(attribute);
  writer.append(0, numbered(specs[0].shape[0] * specs[0].row_bytes()));
  writer.append(1, std::as_bytes(std::span(c.train_labels)));
  if (c.with_test) {
    writer.append(2, numbered(specs[2].shape[0] * specs[2].row_bytes()));
    writer.append(3, std::as_bytes(std::span(c.test_labels)));
  }
  writer.finish();
  return file;
}

void expect_refused(const Content& content, std::initializer_list<std::string> parts) {
  const TemporaryFolder folder;
  const std::string file = write(folder, content);
  expect_error([&] { read_hdf5_set(file); }, parts);
}

TEST(Hdf5Set, ContentsTellPixelsAndLabelsApart) {
  const auto contents = [](const Content& content) {
    const TemporaryFolder folder;
    return read_hdf5_set(write(folder, content)).train->contents();
  };
  const uint64_t plain = contents({});
  EXPECT_EQ(plain, contents({})) << "equal data in another file";
  EXPECT_EQ(plain, contents({.compressed = true}));
  EXPECT_NE(plain, contents({.train_labels = {0, 1, 2, 1, 1}}));
  EXPECT_NE(plain, contents({.train_shape = {5, 3, 6, 4}, .test_shape = {2, 3, 6, 4}}));
  EXPECT_NE(plain, contents({.train_shape = {6, 3, 4, 6}, .train_labels = {0, 1, 2, 1, 0, 0}}));
}

TEST(Hdf5Set, ReadsPlanesPixelsAndGrey) {
  struct Case {
    std::vector<int64_t> train, test;
    size_t step;  // from a pixel to the next
    size_t plane;
  };
  for (const Case& c : {Case{{5, 3, 4, 6}, {2, 3, 4, 6}, 1, 24}, Case{{5, 4, 6, 3}, {2, 4, 6, 3}, 3, 1},
                        Case{{5, 1, 4, 6}, {2, 1, 4, 6}, 1, 0}, Case{{5, 4, 6, 1}, {2, 4, 6, 1}, 1, 0},
                        Case{{5, 4, 6}, {2, 4, 6}, 1, 0}}) {
    for (const bool compressed : {false, true}) {
      const TemporaryFolder folder;
      const ImageSplits stored_sets = read_hdf5_set(
          write(folder, {.train_shape = c.train, .test_shape = c.test, .compressed = compressed}));
      EXPECT_EQ(stored_sets.train->image_shape(), (Shape{c.plane == 0 ? 1 : 3, 4, 6}));
      const ImageSplits sets = with_channels(stored_sets, 3);
      ASSERT_EQ(sets.train->size(), 5);
      ASSERT_EQ(sets.test->size(), 2);
      EXPECT_EQ(sets.train->image_shape(), (Shape{3, 4, 6}));
      EXPECT_EQ(sets.train->classes(), 3);
      EXPECT_EQ(sets.train->name(), "set");
      const size_t stored = c.plane == 0 ? 24 : 72;
      for (int64_t i = 0; i < 5; ++i) {
        const std::vector<uint8_t> image = image_of(*sets.train, i);
        for (size_t channel = 0; channel < 3; ++channel)
          for (size_t p = 0; p < 24; ++p)
            ASSERT_EQ(image[channel * 24 + p],
                      (size_t(i) * stored + channel * c.plane + p * c.step) * 7 % 251);
      }
      EXPECT_EQ(sets.train->label(2), 2);
    }
  }
}

TEST(Hdf5Set, TheLayoutAttributeDecidesWhereShapesDoNot) {
  const std::vector<int64_t> train{5, 3, 4, 3}, test{2, 3, 4, 3};
  expect_refused({.train_shape = train, .test_shape = test}, {"set.h5", "train/images", "layout"});
  const TemporaryFolder folder;
  const std::string file =
      write(folder, {.train_shape = train, .test_shape = test, .attributes = {{"layout", "NHWC"}}});
  EXPECT_EQ(read_hdf5_set(file).train->image_shape(), (Shape{3, 3, 4}));
  expect_refused({.attributes = {{"layout", "CHWN"}}}, {"CHWN", "NCHW or NHWC"});
  expect_refused({.attributes = {{"layout", "NHWC"}}}, {"5 x 3 x 4 x 6", "no axis"});
}

TEST(Hdf5Set, TakesNameClassesAndNormalisationFromAttributes) {
  const TemporaryFolder folder;
  const std::string file =
      write(folder, {.attributes = {{"name", "letters"},
                                    {"class_names", std::vector<std::string>{"a", "b", "c", "d"}},
                                    {"mean", std::vector<double>{0.5}},
                                    {"std", std::vector<double>{0.25, 0.5, 1}}}});
  const ImageSplits sets = read_hdf5_set(file);
  EXPECT_EQ(sets.train->name(), "letters");
  EXPECT_EQ(sets.test->classes(), 4);
  EXPECT_EQ(sets.test->class_names()[3], "d");
  EXPECT_EQ(sets.train->normalisation().mean, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(sets.train->normalisation().deviation, (std::array<float, 3>{0.25f, 0.5f, 1.0f}));
}

TEST(Hdf5Set, FindsTheNormalisationWhereTheFileHasNone) {
  const TemporaryFolder folder;
  const ImageSplits sets = read_hdf5_set(write(folder, {}));
  double sum = 0;
  for (int64_t i = 0; i < 5; ++i) {
    const std::vector<uint8_t> image = image_of(*sets.train, i);
    sum += std::accumulate(image.begin(), image.begin() + 24, 0.0);
  }
  EXPECT_FLOAT_EQ(sets.train->normalisation().mean[0], float(sum / (5 * 24) / 255));
}

TEST(Hdf5Set, RefusesWhatIsMissingOrWrong) {
  expect_refused({.with_test = false}, {"set.h5", "/test/images"});
  expect_refused({.train_labels = {0, 1, -1, 1, 0}}, {"set.h5", "record 2", "train/labels", "-1"});
  expect_refused(
      {.test_labels = {0, 3}, .attributes = {{"class_names", std::vector<std::string>{"a", "b", "c"}}}},
      {"record 1", "test/images", "label 3", "3 class names"});
  expect_refused({.train_labels = {0, 1}}, {"train/labels", "2 labels for 5 images"});
  expect_refused({.test_shape = {2, 3, 6, 6}}, {"3 x 4 x 6", "3 x 6 x 6"});
  expect_refused({.train_shape = {5, 4, 4, 6}}, {"no axis"});
  expect_refused({.train_shape = {5, 72}}, {"2 axes"});
  expect_refused({.train_shape = {0, 3, 4, 6}, .train_labels = {}}, {"no images"});
  expect_refused({.image_type = ArrayType::f32}, {"train/images", "float32", "uint8"});
  expect_refused({.attributes = {{"mean", std::vector<double>{0.5}}}}, {"mean and std"});
  expect_refused({.attributes = {{"mean", std::vector<double>{0, 0}}, {"std", std::vector<double>{1}}}},
                 {"'mean'"});
  expect_refused({.attributes = {{"mean", std::vector<double>{-0.1}}, {"std", std::vector<double>{1}}}},
                 {"'mean'", "non-negative"});
  expect_refused({.attributes = {{"mean", std::vector<double>{125.3, 123, 113.9}},
                                 {"std", std::vector<double>{63, 62.1, 66.7}}}},
                 {"mean 125.3 123 113.9 and std 63 62.1 66.7", "not of pixels scaled to [0, 1]",
                  "write mean 0.4914 0.4824 0.4467 and std 0.2471 0.2435 0.2616"});
  expect_refused({.attributes = {{"mean", std::vector<double>{0}}, {"std", std::vector<double>{255}}}},
                 {"write mean 0 and std 1"});
  expect_refused({.attributes = {{"mean", std::vector<double>{0}}, {"std", std::vector<double>{0}}}},
                 {"'std'", "positive"});
  expect_refused({.attributes = {{"mean", std::vector<double>{0.002}}, {"std", std::vector<double>{0.001}}}},
                 {"std is 0.001, but pixels scaled to [0, 1] differ by 1/255 at least"});
  expect_error([] { read_hdf5_set("/nowhere.h5"); }, {"/nowhere.h5"});
}

TEST(Hdf5Set, ATruncatedFileIsRefusedAtEveryLength) {
  const TemporaryFolder folder;
  const std::string file = write(folder, {});
  const auto whole = int64_t(std::filesystem::file_size(file));
  for (int64_t bytes = 0; bytes < whole; bytes += 61) {  // no power of two: cuts within structures
    std::filesystem::resize_file(file, uintmax_t(bytes));
    expect_error([&] { read_hdf5_set(file); }, {"set.h5"});
    write(folder, {});
  }
}

TEST(Hdf5Set, RefusesAFileThatChangesAndNamesTheRecord) {
  for (const bool compressed : {false, true}) {
    const TemporaryFolder folder;
    const std::string file = write(folder, {.compressed = compressed});
    const ImageSplits sets = read_hdf5_set(file);
    image_of(*sets.train, 3);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    expect_error([&] { image_of(*sets.train, 3); }, {"set.h5", "changed", "record 3"});
  }
}

TEST(Hdf5Set, TellsThatAnotherFileTookItsName) {
  const TemporaryFolder folder;
  const std::string file = write(folder, {});
  const ImageSplits sets = read_hdf5_set(file);
  EXPECT_EQ(sets.train->replaced(), "");
  std::filesystem::rename(file, folder.path() / "old.h5");
  EXPECT_NE(sets.train->replaced().find("set.h5"), std::string::npos);
  image_of(*sets.train, 0);
}

// Training on a packed set is training on the set.
TEST(Pack, AUnpackedAndAPackedSetFeedTheSameBits) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", records(37));
  write_bytes(folder.path() / "data_batch_2.bin", records(10, 50));
  write_bytes(folder.path() / "test_batch.bin", records(11, 4));
  const ImageSplits cifar = read_cifar(cifar10(), folder.str());
  for (const bool interleaved : {false, true}) {
    for (const bool compressed : {false, true}) {
      const std::string file = folder.str() + "/packed.h5";
      pack(cifar, file,
           {.interleaved = interleaved,
            .compressed = compressed,
            .normalisation = cifar.train->normalisation()});
      const ImageSplits packed = read_hdf5_set(file);
      EXPECT_EQ(packed.train->name(), cifar.train->name());
      EXPECT_EQ(packed.test->size(), 11);
      Loader one(cifar.train, {.batch = 6, .seed = 5}), two(packed.train, {.batch = 6, .seed = 5});
      const Tensor a = Tensor::host({.shape = {6, 3, 32, 32}}), b = Tensor::host({.shape = {6, 3, 32, 32}});
      for (const BatchPosition at : {BatchPosition{0, 0}, BatchPosition{0, 6}, BatchPosition{3, 2}}) {
        one.fill_images(at, 0, a), two.fill_images(at, 0, b);
        EXPECT_EQ(std::memcmp(a.raw(), b.raw(), size_t(a.bytes())), 0) << at.epoch << " " << at.batch;
      }
    }
  }
}

TEST(Pack, EqualSetsMakeEqualBytesAndNoPartIsLeft) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", records(20));
  write_bytes(folder.path() / "test_batch.bin", records(3));
  const ImageSplits cifar = read_cifar(cifar10(), folder.str());
  const auto bytes = [&](const std::string& name) {
    pack(cifar, folder.str() + "/" + name);
    std::ifstream in(folder.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = bytes("a.h5");
  wait_for_another_second();
  EXPECT_EQ(first, bytes("b.h5")) << "no date is in it";
  const ImageSplits packed = read_hdf5_set(folder.str() + "/a.h5");
  EXPECT_NEAR(packed.train->normalisation().mean[0], 0.5, 0.1) << "measured where none is given";
  write_bytes(folder.path() / "data_batch_1.bin", records(20, 1));
  expect_error([&] { pack(cifar, folder.str() + "/c.h5"); }, {"data_batch_1.bin", "record 0"});
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("c.h5")) << entry.path();
}

// h5py is another reader and writer of the same files.
TEST(Hdf5Set, H5pyReadsOursAndWeReadIts) {
  if (std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0)
    GTEST_SKIP() << "h5py is not installed";
  const TemporaryFolder folder;
  write(folder, {.attributes = {{"name", "ours"}, {"class_names", std::vector<std::string>{"x", "y", "z"}}}});
  std::ofstream(folder.path() / "check.py") << R"(
import h5py, numpy as np
f = h5py.File("set.h5")
assert f["train/images"].shape == (5, 3, 4, 6) and f["train/images"].dtype == np.uint8
assert (f["train/images"][:].reshape(-1) == np.arange(360) * 7 % 251).all()
assert list(f["train/labels"][:]) == [0, 1, 2, 1, 0]
assert f.attrs["name"] == "ours" and list(f.attrs["class_names"]) == ["x", "y", "z"]
images = (np.arange(40 * 8 * 8 * 3) % 256).astype(np.uint8).reshape(40, 8, 8, 3)
packed = dict(chunks=(7, 4, 8, 2), compression="gzip", shuffle=True, fletcher32=True)
for name, more in (("plain", {}), ("chunks", packed),
                   ("lzf", dict(compression="lzf")), ("missing", dict(chunks=(7, 8, 8, 3)))):
    with h5py.File(name + ".h5", "w") as g:
        for split in ("train", "test"):
            d = g.create_dataset(split + "/images", images.shape, "u1", **more)
            if name == "missing": d[:7] = images[:7]
            else: d[:] = images
            g[split + "/labels"] = (np.arange(40) % 2).astype("u1")
        g.attrs["layout"] = np.array("nhwc", dtype="S4")
        g.attrs["class_names"] = ["one", "two"]
)";
  ASSERT_EQ(std::system(("cd " + folder.str() + " && /usr/bin/python3 check.py").c_str()), 0);
  for (const char* name : {"plain", "chunks"}) {
    const ImageSplits sets = read_hdf5_set(folder.str() + "/" + name + ".h5");
    EXPECT_EQ(sets.train->class_names()[1], "two");
    for (const int64_t i : {39, 0, 7, 20}) {  // out of order
      const std::vector<uint8_t> image = image_of(*sets.train, i);
      for (size_t c = 0; c < 3; ++c)
        for (size_t p = 0; p < 64; ++p) ASSERT_EQ(image[c * 64 + p], (size_t(i) * 192 + p * 3 + c) % 256);
    }
  }
  expect_error([&] { read_hdf5_set(folder.str() + "/lzf.h5"); }, {"lzf.h5", "filter", "gzip"});
  expect_error([&] { read_hdf5_set(folder.str() + "/missing.h5"); }, {"missing.h5", "1 of its 6 chunks"});
}

// A limit of the process stands in for a full disk: writing ends in an error of the system, which HDF5 wraps
// in lines.
TEST(Pack, ADiskThatIsFullIsOneLine) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", records(48));
  write_bytes(folder.path() / "test_batch.bin", records(23));
  const ImageSplits cifar = read_cifar(cifar10(), folder.str());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before, small;
  ::getrlimit(RLIMIT_FSIZE, &before);
  small = before, small.rlim_cur = 50'000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string sentence;
  try {
    pack(cifar, folder.str() + "/set.h5");
  } catch (const Error& error) {
    sentence = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(sentence.find("(File too large)"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "set.h5"));
}

}  // namespace
}  // namespace antichain
