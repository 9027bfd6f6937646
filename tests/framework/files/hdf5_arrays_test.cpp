// Tests arrays that lie elsewhere in an HDF5 file than their names say: behind soft links, and in virtual
// datasets. What would be read as zeros, or from outside, is refused.
#include "framework/files/hdf5_arrays.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>
#include <numeric>

#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

constexpr hsize_t four_by_three[2] = {4, 3};

class Elsewhere : public ::testing::Test {
 protected:
  // Writes a file by HDF5's own functions.
  std::string write(const std::string& name, const std::function<void(hid_t)>& fill) const {
    const std::string path = folder_.str() + "/" + name;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    fill(file);
    H5Fclose(file), H5Pclose(access);
    return path;
  }
  // Adds 4 x 3 bytes: first, first + 1, …
  static void add_plain(hid_t file, const char* name, uint8_t first, hid_t type = H5T_STD_U8LE) {
    std::array<uint8_t, 12> values;
    std::iota(values.begin(), values.end(), first);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(2, four_by_three, nullptr);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t dataset = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset), H5Sclose(space), H5Pclose(links);
  }
  struct Part {
    const char *file, *dataset;
    hsize_t row;            // of the virtual dataset
    hsize_t rows_said = 4;  // of the source
  };
  // Adds a virtual dataset of 8 x 3 bytes.
  static void add_virtual(hid_t file, const std::vector<Part>& parts) {
    const hsize_t whole[2] = {8, 3};
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, whole, nullptr);
    for (const Part& part : parts) {
      const hsize_t said[2] = {part.rows_said, 3}, first[2] = {part.row, 0};
      const hid_t source = H5Screate_simple(2, said, nullptr);
      H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, said, nullptr);
      H5Pset_virtual(creation, space, part.file, part.dataset, source);
      H5Sclose(source);
    }
    H5Sselect_all(space);
    const hid_t dataset = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dclose(dataset), H5Sclose(space), H5Pclose(creation);
  }
  static std::vector<uint8_t> row_of(ArrayReader& reader, const ArrayReader::Opened& opened, int64_t row) {
    std::vector<uint8_t> values(size_t(opened.spec.row_bytes()));
    reader.read(opened, row, std::as_writable_bytes(std::span(values)));
    return values;
  }
  TemporaryFolder folder_;
};

TEST_F(Elsewhere, SoftLinksAreFollowedWithinTheFile) {
  const std::string file = write("links.h5", [](hid_t id) {
    add_plain(id, "all/deep/x", 5);
    H5Lcreate_soft("/all/deep/x", id, "absolute", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("deep", id, "all/short", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("all/./short/x", id, "twice", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere/x", id, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("loop", id, "loop", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("secret.h5", "/x", id, "outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("outside", id, "round", H5P_DEFAULT, H5P_DEFAULT);
  });
  ArrayReader reader(file);
  for (const char* name : {"absolute", "all/short/x", "twice", "all/deep/x"}) {
    EXPECT_TRUE(reader.has(name)) << name;
    EXPECT_EQ(row_of(reader, reader.open(name, ArrayType::u8), 1), (std::vector<uint8_t>{8, 9, 10})) << name;
  }
  EXPECT_FALSE(reader.has("missing"));
  EXPECT_FALSE(reader.has("all/short")) << "a group";
  expect_error([&] { reader.has("dangling"); }, {"links.h5: '/dangling' is a link", "no '/nowhere'"});
  expect_error([&] { reader.has("loop"); }, {"'loop'", "more than 16 others"});
  for (const char* name : {"outside", "round", "outside/x"})
    expect_error([&] { reader.has(name); }, {"links.h5: '/outside' is a link to the file secret.h5"});
}

TEST_F(Elsewhere, AVirtualDatasetIsReadFromItsSources) {
  write("part.h5", [](hid_t id) { add_plain(id, "y", 100); });
  const std::string file = write("whole.h5", [](hid_t id) {
    add_plain(id, "own", 0);
    add_virtual(id, {{"part.h5", "y", 0}, {".", "own", 4}});
  });
  ArrayReader reader(file);
  const ArrayReader::Opened opened = reader.open("x", ArrayType::u8);
  EXPECT_EQ(opened.spec.shape, (std::vector<int64_t>{8, 3}));
  EXPECT_EQ(opened.sources, (std::vector<std::string>{folder_.str() + "/part.h5"}));
  EXPECT_EQ(row_of(reader, opened, 1), (std::vector<uint8_t>{103, 104, 105}));
  EXPECT_EQ(row_of(reader, opened, 4), (std::vector<uint8_t>{0, 1, 2}));
  std::filesystem::remove(folder_.path() / "part.h5");
  EXPECT_EQ(row_of(reader, opened, 3), (std::vector<uint8_t>{109, 110, 111})) << "its source is kept open";
}

// HDF5 itself reads zeros in all these cases.
TEST_F(Elsewhere, AVirtualDatasetThatIsNotWholeIsRefused) {
  write("part.h5", [](hid_t id) {
    add_plain(id, "y", 100);
    add_plain(id, "wide", 100, H5T_STD_U16LE);
  });
  const struct {
    std::vector<Part> parts;
    std::string why;
  } cases[] = {{{{"part.h5", "y", 0}}, "has 24 values, but its sources cover 12"},
               {{{"part.h5", "y", 0}, {"part.h5", "y", 2}}, "has 24 values, but its sources cover 18"},
               {{{"part.h5", "y", 0}, {"gone.h5", "y", 4}}, "which the virtual dataset 'x' is made"},
               {{{"part.h5", "y", 0}, {"part.h5", "gone", 4}}, "no dataset 'gone'"},
               {{{"part.h5", "y", 0}, {"part.h5", "wide", 4}}, "'wide' is uint16"},
               {{{"part.h5", "y", 0, 8}}, "does not fit 'y'"},
               {{{"part.h5", "y", 0}, {".", "x", 4}}, "does not fit 'x'"}};
  for (const auto& c : cases) {
    const std::string file = write("whole.h5", [&](hid_t id) { add_virtual(id, c.parts); });
    expect_error([&] { ArrayReader(file).open("x", ArrayType::u8); }, {c.why});
  }
  const std::string growing = write("growing.h5", [](hid_t id) {
    const hsize_t whole[2] = {8, 3}, most[2] = {H5S_UNLIMITED, 3}, first[2] = {0, 0}, step[2] = {4, 3},
                  times[2] = {H5S_UNLIMITED, 1};
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, whole, most),
                source = H5Screate_simple(2, four_by_three, nullptr);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first, step, times, step);
    EXPECT_GE(H5Pset_virtual(creation, space, "part-%b.h5", "y", source), 0);
    const hid_t dataset = H5Dcreate2(id, "x", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dclose(dataset), H5Sclose(source), H5Sclose(space), H5Pclose(creation);
  });
  expect_error([&] { ArrayReader(growing).open("x", ArrayType::u8); }, {"no fixed number of sources"});
}

}  // namespace
}  // namespace antichain
