// These tests run antichain data, and train on what it packs.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "framework/files/hdf5_arrays.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/app/program.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

// A PNG of 1 x 2 grey pixels (height x width).
const std::vector<uint8_t> png_of_two_pixels = {
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0xD1, 0x49, 0x20, 0x56, 0x00,
    0x00, 0x00, 0x0B, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x68, 0x10, 0x00, 0x00, 0x01, 0x13, 0x00,
    0x91, 0xD3, 0xB5, 0xA6, 0xAC, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};

class DataCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_.path() / "set" / "data_batch_1.bin", records(20));
    write_bytes(folder_.path() / "set" / "test_batch.bin", records(5));
  }
  ProgramRun run(const std::string& words) const { return run_program(folder_.str(), words); }
  std::string file(const std::string& name) const { return folder_.str() + "/" + name; }
  const TemporaryFolder folder_;
};

TEST_F(DataCommands, TrainingOnAPackedSetIsTrainingOnTheSet) {
  const ProgramRun packed = run("data pack --cifar set --out set.h5 --layout nhwc --compress");
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_NE(packed.out.find("20 images for training and 5 for tests"), std::string::npos) << packed.out;
  const std::string how = "train --model resnet20 --batch 8 --microbatches 2 --epochs 1 --lr 0.01 ";
  const ProgramRun one = run(how + "--data-dir set --json a.json");
  const ProgramRun two = run(how + "--dataset hdf5:set.h5 --json b.json --local 2");
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(two.code, 0) << two.err;
  const auto state = [&](const char* name) { return nlohmann::json::parse(read_file(file(name)))["state"]; };
  EXPECT_EQ(state("a.json"), state("b.json"));
}

// A virtual dataset is put together from another file, and a folder of images may have links out of it.
TEST_F(DataCommands, NoOutputReplacesWhatASetIsMadeOf) {
  ASSERT_EQ(run("data pack --cifar set --out part.h5").code, 0);
  const hid_t part = H5Fopen(file("part.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
              whole = H5Fcreate(file("whole.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
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
    expect_refused(run(batches + name), 2, "a file of the data set", name);
  EXPECT_EQ(run(batches + "b.h5").code, 0);
  for (const char* cat : {"1.png", "2.png"}) write_bytes(file("cats") + "/" + cat, png_of_two_pixels);
  std::filesystem::create_directory(file("photos"));
  std::filesystem::create_directory_symlink("../cats", file("photos/cat"));
  expect_refused(run("data pack --images photos --out cats/2.png --size 8"), 2, "an image that is packed",
                 "cats");
}

TEST_F(DataCommands, AFolderIsNoHdf5File) {
  for (const std::string command : {"train --model resnet20 --steps 1", "data batches --out b.h5 --steps 1"})
    expect_refused(run(command + " --dataset hdf5:set"), 2,
                   "--dataset hdf5:set wants a file, and set is a folder", command);
}

TEST_F(DataCommands, Cifar100TrainsAHundredClasses) {
  std::vector<uint8_t> bytes;
  for (int r = 0; r < 24; ++r) {
    bytes.insert(bytes.end(), {uint8_t(r % 20), uint8_t(99 - r)});
    bytes.insert(bytes.end(), 3072, uint8_t(9 * r));
  }
  write_bytes(file("hundred/train.bin"), bytes);
  write_bytes(file("hundred/test.bin"), bytes);
  const ProgramRun trained = run(
      "train --model resnet20 --batch 8 --microbatches 2 --epochs 1 --lr 0.01 --local 2 --dataset cifar100 "
      "--data-dir hundred --results kept");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("CIFAR-100 (a subset)"), std::string::npos) << trained.out;
  const ProgramRun tested =
      run("evaluate --model resnet20 --weights kept/weights.h5 --dataset cifar100 --data-dir hundred");
  EXPECT_EQ(tested.code, 0) << tested.err;
  EXPECT_NE(run("data show hundred").out.find("100 classes"), std::string::npos);
  expect_refused(run("train --model resnet20 --data-dir hundred"), 2, "not of CIFAR-10",
                 "cifar10 of a hundred");
}

TEST_F(DataCommands, ShowListsSplitsAndClasses) {
  const ProgramRun shown = run("data show set");
  ASSERT_EQ(shown.code, 0) << shown.err;
  for (const char* part : {"CIFAR-10 (a subset)", "32 x 32", "10 classes", "train", "test", "class 9"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << "\n" << shown.out;
}

TEST_F(DataCommands, BatchesAreTheSameInBothFormatsAndFromAnyStepOn) {
  const std::string how = "data batches --data-dir set --batch 6 --seed 4 ";
  for (const char* out :
       {"--steps 5 --out a.safetensors", "--steps 5 --out a.h5", "--steps 2 --first-step 3 --out b.h5"}) {
    const ProgramRun written = run(how + out);
    ASSERT_EQ(written.code, 0) << written.err;
  }
  const Weights a = read_weights(file("a.safetensors")), same = read_weights(file("a.h5")),
                b = read_weights(file("b.h5"));
  const NamedTensor &images = *a.find("images"), &last = *b.find("images");
  EXPECT_EQ(images.shape, (std::vector<int64_t>{30, 3, 32, 32}));
  EXPECT_EQ(images, *same.find("images"));
  EXPECT_EQ(*a.find("labels"), *same.find("labels"));
  const auto& all = std::get<std::vector<float>>(images.values);
  EXPECT_TRUE(
      std::equal(all.begin() + 18 * 3072, all.end(), std::get<std::vector<float>>(last.values).begin()));
}

TEST_F(DataCommands, EvaluateTakesAFileOfOnesOwn) {
  ASSERT_EQ(run("data pack --cifar set --out set.h5").code, 0);
  ASSERT_EQ(run("export --model resnet20 --out w.h5").code, 0);
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
  expect_refused(run(how + "--dataset hdf5:nowhere.h5"), 3, "nowhere.h5", "a missing file");
}

TEST_F(DataCommands, ALinkToItselfIsAnImageThatCantBeRead) {
  write_bytes(folder_.path() / "photos" / "a" / "damaged.png", {});
  std::filesystem::create_symlink("x.png", folder_.path() / "photos" / "a" / "x.png");
  std::filesystem::create_symlink("a", folder_.path() / "photos" / "link");  // a class, too
  std::filesystem::create_symlink("y", folder_.path() / "photos" / "y");
  expect_refused(run("data pack --images photos --out x.h5"), 3, "photos/a/", "links");
  expect_refused(run("data pack --images photos --skip-damaged --out x.h5"), 3, "photos", "nothing is left");
  std::filesystem::create_directory_symlink("..", folder_.path() / "photos" / "a" / "up");
  expect_refused(run("data pack --images photos --skip-damaged --out x.h5"), 3,
                 "photos/a/up is a link to a folder that it lies in", "each image again and again");
}

// Grey images are stored in one channel, and networks of three channels get it three times.
TEST_F(DataCommands, GreyImagesTrain) {
  std::string lines;
  for (int i = 0; i < 1797; ++i) {
    for (int p = 0; p < 64; ++p) lines += std::to_string((i * 5 + p) % 17) + ",";
    lines += std::to_string(i % 10) + "\n";
  }
  write_bytes(file("digits.csv"), {lines.begin(), lines.end()});
  const ProgramRun packed = run("data pack --digits digits.csv --out digits.h5");
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_NE(packed.out.find("1,437 images for training and 360 for tests, 8 x 8 pixels in grey, 10 classes"),
            std::string::npos)
      << packed.out;
  EXPECT_NE(run("data show digits.h5").out.find("in grey"), std::string::npos);
  const ProgramRun trained =
      run("train --model resnet20 --dataset hdf5:digits.h5 --batch 16 --microbatches 2 --steps 2 --lr 0.01");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramRun again = run("data pack --cifar set --grey --out grey.h5");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("in grey"), std::string::npos) << again.out;
}

// A file without the attribute name has that of the file. Its images are the same under another one.
TEST_F(DataCommands, ARenamedFileResumesAndOneClassIsWarnedOf) {
  const std::vector<int64_t> labels(16, 0);
  const std::vector<std::byte> pixels(16 * 3 * 8 * 8, std::byte(9));
  ArrayWriter writer(file("a.h5"), {{.path = "train/images", .shape = {16, 3, 8, 8}},
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
  std::filesystem::rename(file("a.h5"), file("b.h5"));
  const ProgramRun second = run(how + "--dataset hdf5:b.h5 --resume auto");
  EXPECT_EQ(second.code, 0) << second.err;
}

TEST_F(DataCommands, PackSaysWhatTrainingWouldRefuse) {
  for (int i = 0; i < 4; ++i) {
    const std::string place = file(std::string("photos/") + "ab"[i % 2] + "/" + std::to_string(i) + ".png");
    write_bytes(place, png_of_two_pixels);
  }
  expect_refused(run("data pack --images photos --out x.h5"), 3,
                 "have 1 x 2 pixels, and networks take square ones", "oblong images");
  const ProgramRun kept = run("data pack --images photos --size 1x2 --out x.h5"),
                   square = run("data pack --images photos --size 2 --out x.h5");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_NE(kept.out.find("will have 1 x 2 pixels, and networks take square ones"), std::string::npos);
  EXPECT_EQ(square.code, 0) << square.err;
  EXPECT_NE(square.out.find("all images are grey: --grey stores one channel"), std::string::npos)
      << square.out;
  expect_refused(run("data pack --cifar set --test-fraction 0.2 --out x.h5"), 2,
                 "--test-fraction is for --images", "a fraction of CIFAR");
}

TEST_F(DataCommands, RefusesInOneSentence) {
  expect_refused(run("data"), 2, "a command is missing", "data");
  expect_refused(run("data pak"), 2, "did you mean 'pack'", "data pak");
  expect_refused(run("data pack --out x.h5"), 2, "one of --cifar DIR, --images FOLDER and --digits FILE",
                 "data pack");
  expect_refused(run("data pack --images set --size 8x --out x.h5"), 2, "--size", "--size 8x");
  expect_refused(run("data pack --images set --out x.h5"), 3, "no sub-folders", "no sub-folders");
  expect_refused(run("train --dataset hdf5:nowhere.h5"), 3, "nowhere.h5", "a missing file");
  expect_refused(run("train --dataset hdf5:set.h5 --data-dir set"), 2, "--data-dir", "both");
  expect_refused(run("train --dataset cifar"), 2, "cifar10", "cifar");
}

}  // namespace
}  // namespace antichain
