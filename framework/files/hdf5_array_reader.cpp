// Reads arrays from HDF5 files: the reader of framework/files/hdf5_arrays.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "framework/error.h"
#include "framework/file_handle.h"
#include "framework/files/hdf5_arrays.h"
#include "framework/files/hdf5_objects.h"
#include "framework/files/hdf5_session.h"
#include "framework/paths.h"

namespace antichain {
using namespace hdf5;
namespace {

constexpr int64_t most_cache_bytes = int64_t(256) << 20;  // of unpacked chunks, per array

int64_t clamped(hsize_t value) { return int64_t(std::min<hsize_t>(value, INT64_MAX)); }

ReadAt reads_file(const FileHandle& handle) {
  return [&handle](uint64_t place, std::span<char> to) {
    return ::pread(handle, to.data(), to.size(), off_t(place)) == ssize_t(to.size());
  };
}

hid_t open_file(const std::string& file) {
  refuse_driver_information(reads_file(FileHandle(::open(file.c_str(), O_RDONLY | O_CLOEXEC))), file);
  H5PLset_loading_state(0);  // no code is loaded because a file asks for it
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id < 0)
    fail(file, "HDF5 can't open the file",
         "is it an HDF5 file, whole, and not being written by another program?");
  return id;
}

void check_type(hid_t dataset, ArrayType wanted, const std::string& file, const std::string& path) {
  const Type type(H5Dget_type(dataset));
  const H5T_class_t kind = H5Tget_class(type);
  const size_t size = H5Tget_size(type);
  const bool integer = kind == H5T_INTEGER, is_signed = integer && H5Tget_sign(type) == H5T_SGN_2;
  const bool fits = wanted == ArrayType::u8    ? integer && size == 1 && !is_signed
                    : wanted == ArrayType::i64 ? integer && size <= 8
                                               : kind == H5T_FLOAT && size == 4;
  if (fits) return;
  const std::string is = integer             ? fmt::format("{}int{}", is_signed ? "" : "u", 8 * size)
                         : kind == H5T_FLOAT ? fmt::format("float{}", 8 * size)
                                             : std::string("of another type");
  throw Error(fmt::format("{}: '{}' is {}", file, path, is),
              wanted == ArrayType::u8    ? "images are uint8, 0 to 255"
              : wanted == ArrayType::i64 ? "labels are integers"
                                         : "store float32");
}

std::vector<int64_t> shape_in_rows(hid_t dataset, const std::string& file, const std::string& path) {
  const Space space(H5Dget_space(dataset));
  std::array<hsize_t, H5S_MAX_RANK> extents;
  const int rank = H5Sget_simple_extent_type(space) == H5S_SIMPLE
                       ? H5Sget_simple_extent_dims(space, extents.data(), nullptr)
                       : -1;
  if (rank < 1) fail(file, fmt::format("'{}' has no rows", path), "store one row per image");
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) shape.push_back(clamped(extents[size_t(i)]));
  return shape;
}

// Returns the number of elements times `size`. Throws Error when that is above `most`.
int64_t checked_bytes(const std::vector<int64_t>& shape, int64_t size, int64_t most, const std::string& file,
                      const std::string& path) {
  int64_t bytes = size;
  for (const int64_t d : shape) {
    if (d != 0 && bytes > most / d)
      fail(file, fmt::format("'{}' says it is {}, more than the file has", path, fmt::join(shape, " x ")));
    bytes *= d;
  }
  return bytes;
}

void check_filters(hid_t creation, const std::string& file, const std::string& path) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(creation, unsigned(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
      fail(file, fmt::format("'{}' is packed by filter {}", path, int(filter)),
           "store it plainly, or with gzip compression");
  }
}

// Returns the shape of a chunk. Every chunk must be there and small enough to be unpacked in memory.
std::vector<int64_t> check_chunks(hid_t dataset, hid_t creation, const std::vector<int64_t>& shape,
                                  int64_t size, const std::string& file, const std::string& path) {
  std::array<hsize_t, H5S_MAX_RANK> extents;
  const int rank = H5Pget_chunk(creation, H5S_MAX_RANK, extents.data());
  if (rank != int(shape.size())) fail(file, fmt::format("the chunks of '{}' have another rank", path));
  std::vector<int64_t> chunk;
  for (int i = 0; i < rank; ++i) chunk.push_back(std::max<int64_t>(clamped(extents[size_t(i)]), 1));
  checked_bytes(chunk, size, most_cache_bytes, file, path + "' in one chunk '");
  double wanted = 1;  // no overflow
  for (int i = 0; i < rank; ++i)
    wanted *= double((shape[size_t(i)] + chunk[size_t(i)] - 1) / chunk[size_t(i)]);
  const Space space(H5Dget_space(dataset));
  hsize_t there = 0;
  if (H5Dget_num_chunks(dataset, space, &there) < 0 || double(there) != wanted)
    fail(file, fmt::format("'{}' has {} of its {:.0f} chunks", path, there, wanted),
         "it was never written to its end: make the file again");
  return chunk;
}

// Stored says how an array lies in the file. The array may claim as many bytes as are stored, or
// `most_compression` times as many where they are packed.
struct Stored {
  H5D_layout_t layout;
  bool packed;
  int64_t most_bytes;
};
Stored check_stored(hid_t dataset, hid_t creation, int64_t file_bytes, const std::string& file,
                    const std::string& path) {
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (H5Pget_external_count(creation) > 0)
    throw Error(fmt::format("{}: the data of '{}' lie in another file", file, path),
                "store them in this one, or as a virtual dataset of HDF5 files");
  if (layout == H5D_VIRTUAL) return {layout, false, INT64_MAX};  // its sources are checked
  check_filters(creation, file, path);
  const int64_t stored = std::min(clamped(H5Dget_storage_size(dataset)), file_bytes);
  const bool packed = layout == H5D_CHUNKED && H5Pget_nfilters(creation) > 0;
  return {layout, packed, packed ? stored * most_compression : layout == H5D_CHUNKED ? file_bytes : stored};
}

// Returns where the rows begin, if they lie one after the other.
int64_t checked_offset(hid_t dataset, int64_t bytes, int64_t file_bytes, const std::string& file,
                       const std::string& path) {
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF || clamped(offset) > file_bytes - bytes)
    fail(file, fmt::format("'{}' ends after the file", path));
  return int64_t(offset);
}

// Opens the array with a cache of unpacked chunks that holds all of a small array, and at most
// most_cache_bytes of a large one.
hid_t open_cached(hid_t file, const std::string& path, int64_t bytes, int64_t chunk_bytes) {
  const Properties access(H5Pcreate(H5P_DATASET_ACCESS));
  const int64_t cache = std::clamp(2 * bytes, chunk_bytes, most_cache_bytes);
  const size_t slots = size_t(std::min<int64_t>(100 * (cache / chunk_bytes + 1), 1'000'003)) | 1;
  H5Pset_chunk_cache(access, slots, size_t(cache), 1.0);
  return H5Dopen2(file, path.c_str(), access);
}

}  // namespace

struct ArrayReader::State {
  State(std::string name_, hid_t id) : name(std::move(name_)), file(id) {}
  std::string name;
  File file;
  int64_t file_bytes = 0;
  std::vector<std::unique_ptr<Object>> arrays;        // closed before the file
  std::vector<std::unique_ptr<ArrayReader>> sources;  // of virtual arrays: open as long as these
};

ArrayReader::ArrayReader(const std::string& file) {
  if (!is_plain_file(file)) throw Error("there is no file " + file, "name an HDF5 file");
  const Session session;
  state_ = std::make_unique<State>(file, open_file(file));
  std::error_code failed;
  state_->file_bytes = int64_t(std::filesystem::file_size(file, failed));
  if (failed) throw Error(fmt::format("can't read {}: {}", file, failed.message()), "check the path");
}

ArrayReader::~ArrayReader() {
  if (state_) state_->sources.clear();
  const Session session;
  if (state_) state_->arrays.clear();
  state_.reset();
}

bool ArrayReader::has(const std::string& path) const {
  const Session session;
  return !resolved(state_->file, path, state_->name).empty();
}

ArrayType ArrayReader::type_of(const std::string& path) const {
  const Session session;
  const Object dataset(
      H5Dopen2(state_->file, resolved(state_->file, path, state_->name).c_str(), H5P_DEFAULT));
  if (dataset < 0) fail(state_->name, fmt::format("HDF5 can't open '{}'", path));
  const Type type(H5Dget_type(dataset));
  if (H5Tget_class(type) != H5T_INTEGER) return ArrayType::f32;
  return H5Tget_size(type) == 1 && H5Tget_sign(type) == H5T_SGN_NONE ? ArrayType::u8 : ArrayType::i64;
}

ArrayReader::Opened ArrayReader::open(const std::string& path, ArrayType type) {
  std::vector<VirtualSource> sources, of_source;
  Opened opened = open_one(path, type, sources);
  if (sources.empty()) return opened;
  // Each source is opened as an array of its own, so that all is checked that is checked of one.
  std::map<std::string, ArrayReader*> readers;
  for (const VirtualSource& source : sources) {
    ArrayReader*& reader = readers[source.file];
    if (reader == nullptr) {
      if (!is_plain_file(source.file))
        throw Error(fmt::format("{}: there is no file {}, which the virtual dataset '{}' is made of",
                                state_->name, source.file, path),
                    "put it where it was");
      state_->sources.push_back(std::make_unique<ArrayReader>(source.file));
      reader = state_->sources.back().get();
      if (source.file != state_->name) opened.sources.push_back(source.file);
    }
    const Opened part = reader->open_one(source.dataset, type, of_source);
    const Session session;
    const Type whole_type(H5Dget_type(*state_->arrays[opened.handle])),
        part_type(H5Dget_type(*reader->state_->arrays[part.handle]));
    if (!of_source.empty() || !source.fits(part.spec.shape) || H5Tequal(whole_type, part_type) <= 0)
      throw Error(fmt::format("{}: the virtual dataset '{}' does not fit '{}' of {}", state_->name, path,
                              source.dataset, source.file),
                  "it is put together from plain datasets of its own type that have all the values");
  }
  const Session session;
  const Object& dataset = *state_->arrays[opened.handle];
  open_sources(dataset, Properties(H5Dget_create_plist(dataset)), state_->name, path);
  return opened;
}

ArrayReader::Opened ArrayReader::open_one(const std::string& path, ArrayType type,
                                          std::vector<VirtualSource>& sources) {
  const Session session;
  const std::string& name = state_->name;
  const std::string hard = resolved(state_->file, path, name);
  if (hard.empty())
    throw Error(fmt::format("{} has no dataset '{}'", name, path), "h5ls -r lists what a file has");
  auto dataset = std::make_unique<Object>(H5Dopen2(state_->file, hard.c_str(), H5P_DEFAULT));
  if (*dataset < 0) fail(name, fmt::format("HDF5 can't open '{}'", path));
  check_type(*dataset, type, name, path);
  Opened opened{.handle = state_->arrays.size(),
                .spec = {.path = path, .shape = shape_in_rows(*dataset, name, path), .type = type},
                .offset = {}};
  const Properties creation(H5Dget_create_plist(*dataset));
  const Stored stored = check_stored(*dataset, creation, state_->file_bytes, name, path);
  const Type type_there(H5Dget_type(*dataset));
  const auto size = int64_t(H5Tget_size(type_there));
  const int64_t bytes = checked_bytes(opened.spec.shape, size, stored.most_bytes, name, path);
  if (stored.layout == H5D_VIRTUAL) sources = virtual_sources(*dataset, creation, name, path);
  if (stored.layout == H5D_CHUNKED && bytes > 0) {
    const std::vector<int64_t> chunk = check_chunks(*dataset, creation, opened.spec.shape, size, name, path);
    opened.rows_per_chunk = chunk[0];
    opened.spec.compressed = stored.packed;
    const int64_t chunk_bytes = checked_bytes(chunk, size, most_cache_bytes, name, path);
    dataset.reset();
    dataset = std::make_unique<Object>(open_cached(state_->file, hard, bytes, chunk_bytes));
    if (*dataset < 0) fail(name, fmt::format("HDF5 can't open '{}'", path));
  }
  if (stored.layout == H5D_CONTIGUOUS && bytes > 0)
    opened.offset = checked_offset(*dataset, bytes, state_->file_bytes, name, path);
  state_->arrays.push_back(std::move(dataset));
  return opened;
}

void ArrayReader::read(const Opened& opened, int64_t first_row, std::span<std::byte> out) const {
  const ArraySpec& spec = opened.spec;
  const int64_t rows = spec.row_bytes() == 0 ? 0 : int64_t(out.size()) / spec.row_bytes();
  ANTICHAIN_CHECK(
      first_row >= 0 && int64_t(out.size()) == rows * spec.row_bytes() && rows <= spec.shape[0] - first_row,
      "whole rows of the array");
  if (rows == 0) return;
  const Session session;
  const Object& dataset = *state_->arrays.at(opened.handle);
  std::vector<hsize_t> first(spec.shape.size(), 0), count(spec.shape.begin(), spec.shape.end());
  first[0] = hsize_t(first_row), count[0] = hsize_t(rows);
  const Space in_file(H5Dget_space(dataset)),
      in_memory(H5Screate_simple(int(count.size()), count.data(), nullptr));
  const hid_t type = spec.type == ArrayType::u8    ? H5T_NATIVE_UINT8
                     : spec.type == ArrayType::i64 ? H5T_NATIVE_INT64
                                                   : H5T_NATIVE_FLOAT;
  if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr) < 0 ||
      H5Dread(dataset, type, in_memory, in_file, H5P_DEFAULT, out.data()) < 0)
    fail(state_->name, fmt::format("HDF5 can't read record {} of '{}'", first_row, spec.path));
}

std::string ArrayReader::of_object(const std::string& path) const {
  const Session session;
  return path == "/" ? path : resolved(state_->file, path, state_->name);
}

std::optional<std::vector<std::string>> ArrayReader::strings(const std::string& path,
                                                             const std::string& name) const {
  return string_attribute(state_->file, state_->name, of_object(path), name);
}

std::optional<std::vector<double>> ArrayReader::numbers(const std::string& path,
                                                        const std::string& name) const {
  return number_attribute(state_->file, state_->name, of_object(path), name);
}

}  // namespace antichain
