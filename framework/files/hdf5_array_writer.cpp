// Writes arrays to HDF5 files: the writer of framework/files/hdf5_arrays.h.
#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/files/hdf5_arrays.h"
#include "framework/files/hdf5_session.h"
#include "framework/new_file.h"
#include "framework/random.h"

namespace antichain {
using namespace hdf5;
namespace {

constexpr unsigned deflate_level = 4;
constexpr int64_t block_bytes = int64_t(1) << 20;  // read back at a time

[[noreturn]] void cant_write(const std::string& file, const std::string& what) {
  throw Error(fmt::format("can't write {}: {}{}", file, what, reason()),
              "is the disk full, or the folder read-only?");
}
hid_t checked(hid_t id, const std::string& file, const std::string& what) {
  if (id < 0) cant_write(file, what);
  return id;
}

hid_t type_in_file(ArrayType type) {
  return type == ArrayType::u8 ? H5T_STD_U8LE : type == ArrayType::i64 ? H5T_STD_I64LE : H5T_IEEE_F32LE;
}
hid_t type_in_memory(ArrayType type) {
  return type == ArrayType::u8    ? H5T_NATIVE_UINT8
         : type == ArrayType::i64 ? H5T_NATIVE_INT64
                                  : H5T_NATIVE_FLOAT;
}

// The file is in the format whose structures all have checksums (HDF5 1.10, 2016), without dates: equal data
// give equal bytes.
hid_t create_file(const NewFile& place, const std::string& file) {
  const Properties access(H5Pcreate(H5P_FILE_ACCESS)), creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_obj_track_times(creation, 0);
  return checked(H5Fcreate(place.open_path().c_str(), H5F_ACC_TRUNC, creation, access), file,
                 "HDF5 can't make the file");
}

// Makes "train" of "train/images" where it is missing.
void make_group_of(const std::string& path, hid_t file, const std::string& name) {
  const std::string group = path.substr(0, path.rfind('/'));
  if (group == path || H5Lexists(file, group.c_str(), H5P_DEFAULT) > 0) return;
  const Object made(
      checked(create_group(file, group.c_str()), name, fmt::format("HDF5 can't make the group '{}'", group)));
}

hid_t create_array(hid_t file, const ArraySpec& spec, const std::string& name) {
  make_group_of(spec.path, file, name);
  const std::vector<hsize_t> extents(spec.shape.begin(), spec.shape.end());
  const Space space(H5Screate_simple(int(extents.size()), extents.data(), nullptr));
  const Properties creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(creation, 0);
  if (spec.compressed) {
    std::vector<hsize_t> chunk = extents;
    chunk[0] = 1;
    H5Pset_chunk(creation, int(chunk.size()), chunk.data());
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, deflate_level);
  }
  return checked(
      H5Dcreate2(file, spec.path.c_str(), type_in_file(spec.type), space, H5P_DEFAULT, creation, H5P_DEFAULT),
      name, fmt::format("HDF5 can't make the dataset '{}'", spec.path));
}

void write_strings(hid_t file, const std::string& name, const std::vector<std::string>& values, bool scalar,
                   const std::string& file_name) {
  const hsize_t count = values.size();
  const Space space(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr));
  const Type type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  const Handle<H5Aclose> attribute(
      checked(H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), file_name, name));
  if (H5Awrite(attribute, type, texts.data()) < 0) cant_write(file_name, name);
}

void write_attribute(hid_t file, const Attribute& attribute, const std::string& file_name) {
  const auto& [name, value] = attribute;
  if (const auto* text = std::get_if<std::string>(&value))
    return write_strings(file, name, {*text}, true, file_name);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    return write_strings(file, name, *texts, false, file_name);
  const auto& numbers = std::get<std::vector<double>>(value);
  const hsize_t count = numbers.size();
  const Space space(H5Screate_simple(1, &count, nullptr));
  const Handle<H5Aclose> made(checked(
      H5Acreate2(file, name.c_str(), H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT), file_name, name));
  if (H5Awrite(made, H5T_NATIVE_DOUBLE, numbers.data()) < 0) cant_write(file_name, name);
}

}  // namespace

int64_t ArraySpec::row_bytes() const {
  int64_t bytes = type == ArrayType::u8 ? 1 : type == ArrayType::i64 ? 8 : 4;
  for (size_t i = 1; i < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

struct ArrayWriter::State {
  struct Array {
    ArraySpec spec;
    std::unique_ptr<Object> dataset;
    int64_t rows = 0;   // appended
    uint64_t hash = 0;  // of them, row by row
  };
  std::string name;
  NewFile place;
  std::unique_ptr<File> file;
  std::vector<Array> arrays;
};

ArrayWriter::ArrayWriter(const std::string& file, std::vector<ArraySpec> specs)
    : state_(new State{.name = file, .place = NewFile(file), .file = nullptr, .arrays = {}}) {
  const Session session;
  state_->file = std::make_unique<File>(create_file(state_->place, file));
  for (ArraySpec& spec : specs) {
    auto dataset = std::make_unique<Object>(create_array(*state_->file, spec, file));
    state_->arrays.push_back({.spec = std::move(spec), .dataset = std::move(dataset)});
  }
}

ArrayWriter::~ArrayWriter() {
  const Session session;
  state_.reset();
}

void ArrayWriter::set(const Attribute& attribute) {
  const Session session;
  write_attribute(*state_->file, attribute, state_->name);
}

void ArrayWriter::append(size_t index, std::span<const std::byte> bytes) {
  State::Array& array = state_->arrays.at(index);
  const int64_t row_bytes = array.spec.row_bytes(), rows = int64_t(bytes.size()) / row_bytes;
  ANTICHAIN_CHECK(int64_t(bytes.size()) == rows * row_bytes && array.rows + rows <= array.spec.shape[0],
                  "whole rows, as many as the array has");
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const std::byte> one = bytes.subspan(size_t(row * row_bytes), size_t(row_bytes));
    array.hash = hash_bytes({reinterpret_cast<const char*>(one.data()), one.size()}, array.hash);
  }
  const Session session;
  std::vector<hsize_t> first(array.spec.shape.size(), 0),
      count(array.spec.shape.begin(), array.spec.shape.end());
  first[0] = hsize_t(array.rows), count[0] = hsize_t(rows);
  const Space in_file(H5Dget_space(*array.dataset)),
      in_memory(H5Screate_simple(int(count.size()), count.data(), nullptr));
  if (rows == 0) return;
  if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr) < 0 ||
      H5Dwrite(*array.dataset, type_in_memory(array.spec.type), in_memory, in_file, H5P_DEFAULT,
               bytes.data()) < 0)
    cant_write(state_->name, fmt::format("HDF5 can't write row {} of '{}'", array.rows, array.spec.path));
  array.rows += rows;
}

void ArrayWriter::finish() {
  {
    const Session session;
    for (State::Array& array : state_->arrays) {
      ANTICHAIN_CHECK(array.rows == array.spec.shape[0], "every row was appended");
      array.dataset.reset();
    }
    if (H5Fflush(*state_->file, H5F_SCOPE_GLOBAL) < 0) cant_write(state_->name, "HDF5 can't flush it");
    state_->file.reset();
  }
  ArrayReader reader(state_->place.path());
  for (const State::Array& array : state_->arrays) {
    const ArrayReader::Opened opened = reader.open(array.spec.path, array.spec.type);
    const int64_t row_bytes = std::max<int64_t>(array.spec.row_bytes(), 1);
    std::vector<std::byte> block(size_t(std::max(block_bytes / row_bytes, int64_t(1)) * row_bytes));
    uint64_t hash = 0;
    for (int64_t row = 0; row < array.rows;) {
      const int64_t rows = std::min<int64_t>(int64_t(block.size()) / row_bytes, array.rows - row);
      const std::span<std::byte> part(block.data(), size_t(rows * row_bytes));
      reader.read(opened, row, part);
      for (int64_t r = 0; r < rows; ++r)
        hash = hash_bytes({reinterpret_cast<const char*>(&part[size_t(r * row_bytes)]), size_t(row_bytes)},
                          hash);
      row += rows;
    }
    if (hash != array.hash) {
      throw Error(fmt::format("{}: '{}' does not read back as it was written", state_->name, array.spec.path),
                  "is the disk full, or damaged?");
    }
  }
  state_->place.commit();
}

}  // namespace antichain
