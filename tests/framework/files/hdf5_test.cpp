// Tests HDF5 files from other programs: what h5py may make of a state_dict is read, anything else is refused
// by name.
#include "framework/files/hdf5.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdio>
#include <cstring>
#include <numeric>

#include "framework/files/hdf5_arrays.h"
#include "framework/json.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// As framework/files/hdf5_session.h does, but before this file is the first to use the library: after damaged
// files its end at exit would complain.
[[maybe_unused]] const herr_t no_end = H5dont_atexit();

constexpr hsize_t six[] = {2, 3};
const std::vector<float> values = {0, 1, -2, 3.5, 1e-30f, 6};

// Returns the bytes of a file in the library's usual format, which has no checksums.
std::string file_of(const std::function<void(hid_t file)>& write, hid_t creation = H5P_DEFAULT) {
  const std::string path = ::testing::TempDir() + "/antichain_hdf5_" + std::to_string(::getpid());
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
  write(file);
  H5Fclose(file);
  const std::string bytes = read_file(path);
  std::remove(path.c_str());
  return bytes;
}

void write_dataset(hid_t place, const char* name, hid_t type, hid_t creation = H5P_DEFAULT) {
  const hid_t space = H5Screate_simple(2, six, nullptr);
  const hid_t dataset = H5Dcreate2(place, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

TEST(Hdf5, ReadsTheUsualFormatInAnyByteOrder) {
  for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
    const Weights w = from_hdf5(file_of([&](hid_t file) { write_dataset(file, "a.weight", type); }), "w.h5");
    ASSERT_EQ(w.size(), 1u);
    EXPECT_EQ(w[0].shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::get<0>(w[0].values), values);
  }
}

TEST(Hdf5, ReadsCompressedChunks) {
  const std::string bytes = file_of([](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {2, 2};
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_deflate(creation, 6);
    write_dataset(file, "a", H5T_IEEE_F32LE, creation);
    H5Pclose(creation);
  });
  EXPECT_EQ(std::get<0>(from_hdf5(bytes, "w.h5")[0].values), values);
}

TEST(Hdf5, RefusesOtherTypesByName) {
  const auto refused = [](hid_t type, const std::string& is) {
    const std::string bytes = file_of([&](hid_t file) { write_dataset(file, "a", type); });
    expect_error([&] { from_hdf5(bytes, "w.h5"); }, {"w.h5: the dataset 'a' is " + is, "float32"});
  };
  refused(H5T_IEEE_F64LE, "float64");
  refused(H5T_STD_I32LE, "an integer of 32 bits");
  refused(H5T_STD_U64LE, "an integer of 64 bits");
}

// Returns the bytes of a chunk of the float32 dataset "a" in a file with these bytes.
hsize_t chunk_bytes(std::string bytes, int rank) {
  const hid_t in_memory = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(in_memory, 1 << 20, 0);
  H5Pset_file_image(in_memory, bytes.data(), bytes.size());
  const hid_t file = H5Fopen("chunks", H5F_ACC_RDONLY, in_memory);
  const hid_t dataset = H5Dopen2(file, "a", H5P_DEFAULT), creation = H5Dget_create_plist(dataset);
  std::vector<hsize_t> chunk(static_cast<size_t>(rank));
  EXPECT_EQ(H5Pget_chunk(creation, rank, chunk.data()), rank);
  H5Pclose(creation);
  H5Dclose(dataset);
  H5Fclose(file);
  H5Pclose(in_memory);
  return std::accumulate(chunk.begin(), chunk.end(), hsize_t(sizeof(float)), std::multiplies<>());
}

// The tensors are cut along the first extent, the second and the last, and not at all. The first chunk and
// the last one have a checksum. What the last chunks lack takes at most a sixteenth.
TEST(Hdf5, LargeTensorsHaveSeveralChunks) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1021, 1031}, {3, 700, 7, 71}, {1, 1'000'003}, {5, 2}}) {
    NamedTensor tensor = make_tensor("a", shape, true, INT64_MAX, "");
    std::vector<float>& numbers = std::get<0>(tensor.values);
    std::iota(numbers.begin(), numbers.end(), 1.f);
    Weights weights;
    weights.add(tensor);
    const std::string bytes = to_hdf5(weights);
    EXPECT_EQ(to_hdf5(weights), bytes);
    EXPECT_LE(chunk_bytes(bytes, int(shape.size())), hsize_t(1) << 20);
    EXPECT_EQ(from_hdf5(bytes, "w.h5")[0], tensor);
    EXPECT_LT(bytes.size(), size_t(tensor.bytes()) * 17 / 16 + 10'000);
    for (const float number : {numbers.front(), numbers.back()}) {
      const size_t at = bytes.rfind(std::string(reinterpret_cast<const char*>(&number), sizeof number));
      std::string damaged = bytes;
      ++damaged.at(at);
      expect_error([&] { from_hdf5(damaged, "w.h5"); }, {"'a'"});
    }
  }
}

TEST(Hdf5, NamesWithSlashesArePaths) {
  Weights weights;
  for (const char* name : {"a/b.weight", "a/c/d", "e"}) weights.add({name, {1}, std::vector<float>{1}});
  const Weights read = from_hdf5(to_hdf5(weights), "w.h5");
  ASSERT_EQ(read.size(), 3u);
  for (const NamedTensor& t : weights) EXPECT_NE(read.find(t.name), nullptr) << t.name;
}

TEST(Hdf5, RefusesEmptyGroupsCyclesAndLinks) {
  const auto group_with = [](const auto& fill) {
    return file_of([&](hid_t file) {
      const hid_t group = H5Gcreate2(file, "layer1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      fill(file, group);
      H5Gclose(group);
    });
  };
  const std::string empty = group_with([](hid_t, hid_t) {});
  expect_error([&] { from_hdf5(empty, "w.h5"); }, {"'layer1' is a group", "layer1.0.conv1.weight"});
  const std::string cycle = group_with(
      [](hid_t file, hid_t group) { H5Lcreate_hard(file, "/", group, "again", H5P_DEFAULT, H5P_DEFAULT); });
  expect_error([&] { from_hdf5(cycle, "w.h5"); }, {"is a group"});
  const std::string soft = file_of([](hid_t file) {
    write_dataset(file, "a", H5T_IEEE_F32LE);
    H5Lcreate_soft("/a", file, "b", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_error([&] { from_hdf5(soft, "w.h5"); }, {"'b' is a link"});
  const std::string root_as_group = file_of([](hid_t file) {
    write_dataset(file, "a", H5T_IEEE_F32LE);
    H5Lcreate_soft("/", file, "momentum", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_EQ(std::get<0>(read_hdf5(root_as_group, {"a"}, "w.h5")[0].values), values);
  expect_error([&] { read_hdf5(root_as_group, {"momentum/a"}, "w.h5"); },
               {"'momentum' is a link, not a group"});
  const std::string external =
      file_of([](hid_t file) { H5Lcreate_external("other.h5", "/a", file, "c", H5P_DEFAULT, H5P_DEFAULT); });
  expect_error([&] { from_hdf5(external, "w.h5"); }, {"'c' is a link"});
}

// A dataset that says it is large, but was never written or lies elsewhere, must not be taken for zeros.
TEST(Hdf5, RefusesDataThatAreNotThere) {
  const auto unwritten = [](bool external) {
    return file_of([&](hid_t file) {
      const hsize_t many[] = {1'000'000, 1'000'000};
      const hid_t space = H5Screate_simple(2, external ? six : many, nullptr);
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      if (external) H5Pset_external(creation, "elsewhere.bin", 0, 24);
      H5Dclose(H5Dcreate2(file, "a", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
      H5Pclose(creation);
      H5Sclose(space);
    });
  };
  expect_error([&] { from_hdf5(unwritten(false), "w.h5"); }, {"'a'", "1000000 x 1000000"});
  expect_error([&] { from_hdf5(unwritten(true), "w.h5"); }, {"'a'", "in another file"});
}

// The library would allocate and fill the 4 GiB that such a block claims.
TEST(Hdf5, RefusesDriverInformation) {
  const auto file_with_driver = [](hsize_t user_block) {
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, user_block);
    std::string bytes = file_of([](hid_t file) { write_dataset(file, "a", H5T_IEEE_F32LE); }, creation);
    H5Pclose(creation);
    const uint64_t address = bytes.size() - user_block;
    std::memcpy(bytes.data() + user_block + 48, &address, sizeof address);
    const std::string claims_4_gib("\0\0\0\0\xf0\xff\xff\xffNCSAfami", 16);
    return bytes + claims_4_gib;
  };
  for (const hsize_t user_block : {0, 512, 2048}) {
    const std::string bytes = file_with_driver(user_block);
    expect_error([&] { from_hdf5(bytes, "w.h5"); }, {"w.h5", "driver information"});
    const std::string path = ::testing::TempDir() + "/antichain_driver_" + std::to_string(::getpid()) + ".h5";
    write_file(path, bytes);
    expect_error([&] { ArrayReader reader(path); }, {path, "driver information"});
    std::remove(path.c_str());
  }
}

TEST(Hdf5, LeavesTheLibrarysErrorPrintingAsItWas) {
  H5E_auto2_t before = nullptr, after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  expect_error([] { from_hdf5("\x89HDF\r\n\x1a\n and nothing else", "w.h5"); }, {"w.h5", "damaged"});
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace antichain
