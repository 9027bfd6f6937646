// These tests run antichain data, and train on what it packs.
#include <hdf5.h>

#include <filesystem>

#include "framework/files/hdf5_arrays.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

// A PNG of 1 x 2 grey pixels (height x width).
const std::vector<uint8_t> png_of_two_pixels = {
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0xD1, 0x49, 0x20, 0x56, 0x00,
    0x00, 0x00, 0x0B, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x68, 0x10, 0x00, 0x00, 0x01, 0x13, 0x00,
    0x91, 0xD3, 0xB5, 0xA6, 0xAC, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};

class DataCommands : public ProgramTest {
 protected:
  void SetUp() override {
    write_bytes(folder_.path() / "set" / "data_batch_1.bin", records(20));
    write_bytes(folder_.path() / "set" / "test_batch.bin", records(5));
  }
};

TEST_F(DataCommands, TrainingOnAPackedSetIsTrainingOnTheSet) {
  const std::string packed = ran("data pack --cifar set --out set.h5 --layout nhwc --compress");
  EXPECT_NE(packed.find("20 images for training and 5 for tests"), std::string::npos) << packed;
  const std::string how = "train --model resnet20 --batch 8 --microbatches 2 --epochs 1 --lr 0.01 ";
  const ProgramRun one = run(how + "--data-dir set --json a.json");
  const ProgramRun two = run(how + "--dataset hdf5:set.h5 --json b.json --local 2");
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(two.code, 0) << two.err;
  const auto state = [&](const char* name) { return nlohmann::json::parse(read_file(path(name)))["state"]; };
  EXPECT_EQ(state("a.json"), state("b.json"));
}

// A virtual dataset is put together from another file, and a folder of images may have links out of it.
TEST_F(DataCommands, NoOutputReplacesWhatASetIsMadeOf) {
  ran("data pack --cifar set --out part.h5");
  const hid_t part = H5Fopen(path("part.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
              whole = H5Fcreate(path("whole.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              links = H5Pcreate(H5P_LINK_CREATE), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  for (const char* name : {"train/images", "train/labels", "test/images", "test/labels"}) {
    const hid_t from = H5Dopen2(part, name, H5P_DEFAULT), space = H5Dget_space(from),
                type = H5Dget_type(from), its = H5Pcopy(creation);
    H5Pset_virtual(its, space, "part.h5", name, space);
    H5Dclose(H5Dcreate2(whole, name, type, space, links, its, H5P_DEFAULT));
    H5Pclose(its), H5Tclose(type), H5Sclose(space), H5Dclose(from);
  }
  H5Pclose(creation), H5Pclose(links), H5Fclose(whole), H5Fclose(part);
  const std::string batches = "data batches --dataset hdf5:whole.h5 --batch 4 --format hdf5 --out ";
  for (const char* name : {"part.h5", "whole.h5"})
    expect_refused(batches + name, 2, "a file of the data set");
  ran(batches + "b.h5");
  for (const char* cat : {"1.png", "2.png"}) write_bytes(path("cats") + "/" + cat, png_of_two_pixels);
  std::filesystem::create_directory(path("photos"));
  std::filesystem::create_directory_symlink("../cats", path("photos/cat"));
  expect_refused("data pack --images photos --out photos/cat/2.png --size 8", 2, "it is no file");
}

TEST_F(DataCommands, AFolderIsNoHdf5File) {
  for (const std::string command : {"train --model resnet20 --steps 1", "data batches --out b.h5 --steps 1"})
    expect_refused(command + " --dataset hdf5:set", 2,
                   "--dataset hdf5:set wants a file, and set is a folder");
}

TEST_F(DataCommands, Cifar100TrainsAHundredClasses) {
  std::vector<uint8_t> bytes;
  for (int r = 0; r < 24; ++r) {
    bytes.insert(bytes.end(), {uint8_t(r % 20), uint8_t(99 - r)});
    bytes.insert(bytes.end(), 3072, uint8_t(9 * r));
  }
  write_bytes(path("hundred/train.bin"), bytes);
  write_bytes(path("hundred/test.bin"), bytes);
  const std::string trained = ran(
      "train --model resnet20 --batch 8 --microbatches 2 --epochs 1 --lr 0.01 --local 2 --dataset cifar100 "
      "--data-dir hundred --results kept");
  EXPECT_NE(trained.find("CIFAR-100 (a subset)"), std::string::npos) << trained;
  ran("evaluate --model resnet20 --weights kept/weights.h5 --dataset cifar100 --data-dir hundred");
  EXPECT_NE(run("data show hundred").out.find("100 classes"), std::string::npos);
  expect_refused("train --model resnet20 --data-dir hundred", 2, "not of CIFAR-10");
}

TEST_F(DataCommands, ShowListsSplitsAndClasses) {
  const std::string shown = ran("data show set");
  for (const char* part : {"CIFAR-10 (a subset)", "32 x 32", "10 classes", "train", "test", "class 9"})
    EXPECT_NE(shown.find(part), std::string::npos) << part << "\n" << shown;
}

TEST_F(DataCommands, BatchesAreTheSameInBothFormatsAndFromAnyStepOn) {
  const std::string how = "data batches --data-dir set --batch 6 --seed 4 ";
  for (const char* out :
       {"--steps 5 --out a.safetensors", "--steps 5 --out a.h5", "--steps 2 --first-step 3 --out b.h5"}) {
    ran(how + out);
  }
  const Weights a = read_weights(path("a.safetensors")), same = read_weights(path("a.h5")),
                b = read_weights(path("b.h5"));
  const NamedTensor &images = *a.find("images"), &last = *b.find("images");
  EXPECT_EQ(images.shape, (std::vector<int64_t>{30, 3, 32, 32}));
  EXPECT_EQ(images, *same.find("images"));
  EXPECT_EQ(*a.find("labels"), *same.find("labels"));
  const auto& all = std::get<std::vector<float>>(images.values);
  EXPECT_TRUE(
      std::equal(all.begin() + 18 * 3072, all.end(), std::get<std::vector<float>>(last.values).begin()));
}

TEST_F(DataCommands, EvaluateTakesAFileOfOnesOwn) {
  ran("data pack --cifar set --out set.h5");
  ran("export --model resnet20 --out w.h5");
  const std::string how = "evaluate --model resnet20 --weights w.h5 --batch 4 ";
  const ProgramRun one = run(how + "--data-dir set --json a.json"),
                   two = run(how + "--dataset hdf5:set.h5 --json b.json");
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(two.code, 0) << two.err;
  const auto loss = [&](const char* name) {
    return nlohmann::json::parse(read_file(folder_.str() + "/" + name))["loss"].get<double>();
  };
  EXPECT_GT(loss("a.json"), 0);
  EXPECT_EQ(loss("a.json"), loss("b.json"));
  expect_refused(how + "--dataset hdf5:nowhere.h5", 3, "nowhere.h5");
}

TEST_F(DataCommands, ALinkToItselfIsAnImageThatCantBeRead) {
  write_bytes(folder_.path() / "photos" / "a" / "damaged.png", {});
  std::filesystem::create_symlink("x.png", folder_.path() / "photos" / "a" / "x.png");
  std::filesystem::create_symlink("a", folder_.path() / "photos" / "link");  // a class, too
  std::filesystem::create_symlink("y", folder_.path() / "photos" / "y");
  expect_refused("data pack --images photos --out x.h5", 3, "photos/y is a link to nothing");
  std::filesystem::remove(path("photos/y"));
  expect_refused("data pack --images photos --out x.h5", 3, "photos/a/");
  expect_refused("data pack --images photos --skip-damaged --out x.h5", 3, "photos");
  std::filesystem::create_directory_symlink("..", folder_.path() / "photos" / "a" / "up");
  expect_refused("data pack --images photos --skip-damaged --out x.h5", 3,
                 "photos/a/up is a link to a folder that it lies in");
}

// Grey images are stored in one channel, and networks of three channels get it three times.
TEST_F(DataCommands, GreyImagesTrain) {
  std::string lines;
  for (int i = 0; i < 1797; ++i) {
    for (int p = 0; p < 64; ++p) lines += std::to_string((i * 5 + p) % 17) + ",";
    lines += std::to_string(i % 10) + "\n";
  }
  write_bytes(path("digits.csv"), {lines.begin(), lines.end()});
  const std::string packed = ran("data pack --digits digits.csv --out digits.h5");
  EXPECT_NE(packed.find("1,437 images for training and 360 for tests, 8 x 8 pixels in grey, 10 classes"),
            std::string::npos)
      << packed;
  EXPECT_NE(run("data show digits.h5").out.find("in grey"), std::string::npos);
  ran("train --model resnet20 --dataset hdf5:digits.h5 --batch 16 --microbatches 2 --steps 2 --lr 0.01");
  const std::string again = ran("data pack --cifar set --grey --out grey.h5");
  EXPECT_NE(again.find("in grey"), std::string::npos) << again;
}

// A file without the attribute name has that of the file. Its images are the same under another one.
TEST_F(DataCommands, ARenamedFileResumesAndOneClassIsWarnedOf) {
  const std::vector<int64_t> labels(16, 0);
  const std::vector<std::byte> pixels(16 * 3 * 8 * 8, std::byte(9));
  ArrayWriter writer(path("a.h5"), {{.path = "train/images", .shape = {16, 3, 8, 8}},
                                    {.path = "train/labels", .shape = {16}, .type = ArrayType::i64},
                                    {.path = "test/images", .shape = {16, 3, 8, 8}},
                                    {.path = "test/labels", .shape = {16}, .type = ArrayType::i64}});
  for (const size_t split : {0, 2})
    writer.append(split, pixels), writer.append(split + 1, std::as_bytes(std::span(labels)));
  writer.finish();
  const std::string how =
      "train --model resnet20 --batch 8 --microbatches 2 --lr 0.01 --epochs 2 --checkpoint ck ";
  const ProgramRun first = run(how + "--dataset hdf5:a.h5 --steps 2");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("of one class, 'class 0', so there is nothing to learn"), std::string::npos)
      << first.err;
  std::filesystem::rename(path("a.h5"), path("b.h5"));
  ran(how + "--dataset hdf5:b.h5 --resume auto");
}

TEST_F(DataCommands, PackSaysWhatTrainingWouldRefuse) {
  for (int i = 0; i < 4; ++i) {
    const std::string place = path(std::string("photos/") + "ab"[i % 2] + "/" + std::to_string(i) + ".png");
    write_bytes(place, png_of_two_pixels);
  }
  expect_refused("data pack --images photos --out x.h5", 3,
                 "have 1 x 2 pixels, and networks take square ones");
  const ProgramRun kept = run("data pack --images photos --size 1x2 --out x.h5"),
                   square = run("data pack --images photos --size 2 --out x.h5");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_NE(kept.out.find("will have 1 x 2 pixels, and networks take square ones"), std::string::npos);
  EXPECT_EQ(square.code, 0) << square.err;
  EXPECT_NE(square.out.find("all images are grey: --grey stores one channel"), std::string::npos)
      << square.out;
  expect_refused("data pack --cifar set --test-fraction 0.2 --out x.h5", 2,
                 "--test-fraction is for --images");
}

TEST_F(DataCommands, RefusesInOneSentence) {
  expect_refused("data", 2, "a command is missing");
  expect_refused("data pak", 2, "did you mean 'pack'");
  expect_refused("data pack --out x.h5", 2, "one of --cifar DIR, --images FOLDER and --digits FILE");
  expect_refused("data pack --images set --size 8x --out x.h5", 2, "--size");
  expect_refused("data pack --images set --out x.h5", 3, "no sub-folders");
  expect_refused("train --dataset hdf5:nowhere.h5", 3, "nowhere.h5");
  expect_refused("train --dataset hdf5:set.h5 --data-dir set", 2, "--data-dir");
  expect_refused("train --dataset cifar", 2, "cifar10");
}

}  // namespace
}  // namespace antichain
