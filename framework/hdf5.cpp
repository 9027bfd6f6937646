#include "framework/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>

#include "framework/error.h"
#include "framework/hdf5_session.h"

namespace antichain {
using namespace hdf5;
namespace {

constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
constexpr const char* damaged = "the file is truncated or damaged";
constexpr int64_t most_compression = 2000;  // deflate reaches 1,032

[[noreturn]] void fail(const std::string& origin, const std::string& what) {
  throw Error(fmt::format("{}: {}{}", origin, what, reason()), damaged);
}

hid_t written(hid_t id, const std::string& what) {
  if (id < 0) throw Error(fmt::format("HDF5 can't write {}{}", what, reason()), "", ExitCode::failure);
  return id;
}

// How HDF5's driver for files in memory gets its memory: it is a string of ours, which it grows while it writes. So
// nothing is copied, and what it leaves out is zero.
struct Memory {
  static void* resize(void*, size_t size, H5FD_file_image_op_t, void* bytes) try {
    static_cast<std::string*>(bytes)->resize(size);
    return static_cast<std::string*>(bytes)->data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  static void* whole(size_t, H5FD_file_image_op_t, void* bytes) {
    return static_cast<std::string*>(bytes)->data();
  }
  static void* stay(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
  static herr_t keep(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* same(void* bytes) { return bytes; }
  static herr_t forget(void*) { return 0; }
};

void use_memory(hid_t access, std::string& bytes) {
  H5FD_file_image_callbacks_t calls{Memory::whole, Memory::stay,   Memory::resize, Memory::keep,
                                    Memory::same,  Memory::forget, &bytes};
  H5Pset_fapl_core(access, size_t(1) << 20, 0);
  H5Pset_file_image_callbacks(access, &calls);
}

// HDF5 takes files of one name for one file, also in memory.
std::string next_name() {
  static uint64_t count = 0;  // within a Session
  return fmt::format("memory-{}.h5", ++count);
}

// In the format whose structures all have checksums (HDF5 1.10, 2016). As many bytes of structures lie together.
hid_t create_in_memory(std::string& bytes, int64_t structure_bytes = 2048) {
  const Properties access(H5Pcreate(H5P_FILE_ACCESS)), creation(H5Pcreate(H5P_FILE_CREATE));
  use_memory(access, bytes);
  H5Pset_meta_block_size(access, hsize_t(structure_bytes));
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_obj_track_times(creation, 0);
  H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return written(H5Fcreate(next_name().c_str(), H5F_ACC_TRUNC, creation, access), "a file into memory");
}

// The driver's memory ends elsewhere than the file; where that is, stands in the superblock (versions 2 and 3).
uint64_t file_size(const std::string& bytes) {
  constexpr size_t place = 28;
  uint64_t size = 0;
  ANTICHAIN_CHECK(bytes.size() >= place + sizeof size, "HDF5 wrote a superblock");
  std::memcpy(&size, bytes.data() + place, sizeof size);
  return size;
}

void write_tensor(hid_t file, const NamedTensor& tensor) {
  const std::vector<hsize_t> extents(tensor.shape.begin(), tensor.shape.end());
  const bool scalar = extents.empty();
  const Space space(scalar ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(int(extents.size()), extents.data(), nullptr));
  const Properties creation(H5Pcreate(H5P_DATASET_CREATE)), links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_obj_track_times(creation, 0);
  H5Pset_char_encoding(links, H5T_CSET_UTF8);
  if (scalar) H5Pset_layout(creation, H5D_COMPACT);  // within the structure, so under its checksum
  if (!scalar && tensor.elements() > 0 && tensor.bytes() < int64_t(UINT32_MAX)) {  // HDF5's limit of a chunk
    H5Pset_chunk(creation, int(extents.size()), extents.data());
    H5Pset_fletcher32(creation);
  }
  const hid_t in_file = tensor.is_float() ? H5T_IEEE_F32LE : H5T_STD_I64LE;
  const hid_t in_memory = tensor.is_float() ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64;
  const std::string what = fmt::format("the tensor '{}'", tensor.name);
  const Object dataset(
      written(H5Dcreate2(file, tensor.name.c_str(), in_file, space, links, creation, H5P_DEFAULT), what));
  if (tensor.elements() > 0)
    written(H5Dwrite(dataset, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data()), what);
}

// A dataset whose values come later: where they belong in the file.
uint64_t reserve(hid_t group, const Hdf5Item& item) {
  const std::vector<hsize_t> extents(item.shape.begin(), item.shape.end());
  const Space space(H5Screate_simple(int(extents.size()), extents.data(), nullptr));
  const Properties creation(H5Pcreate(H5P_DATASET_CREATE)), links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_obj_track_times(creation, 0);
  H5Pset_char_encoding(links, H5T_CSET_UTF8);
  H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
  const std::string what = fmt::format("the tensor '{}'", item.name);
  const Object dataset(written(
      H5Dcreate2(group, item.name.c_str(), H5T_IEEE_F32LE, space, links, creation, H5P_DEFAULT), what));
  const haddr_t place = H5Dget_offset(dataset);
  if (place == HADDR_UNDEF) throw Error("HDF5 can't place " + what, "", ExitCode::failure);
  return place;
}

int64_t value_bytes(const Hdf5Item& item) {
  int64_t bytes = item.count ? 0 : int64_t(sizeof(float));
  for (const int64_t extent : item.shape) bytes *= extent;
  return bytes;
}

// A file but for its values.
struct Outline {
  std::string structures;                           // its first bytes, zero where values go
  std::vector<std::pair<uint64_t, size_t>> places;  // where those of an item go, in the file's order
  uint64_t size = 0;                                // of the file
};

Outline outline(const std::vector<Hdf5Item>& items) {
  constexpr int64_t bytes_per_item = 512, bytes_besides = 4096;  // more is found room for
  const Session session;
  Outline all;
  {
    const File file(create_in_memory(all.structures, bytes_besides + bytes_per_item * int64_t(items.size())));
    std::map<std::string, std::unique_ptr<Object>> groups;
    for (size_t i = 0; i < items.size(); ++i) {
      const Hdf5Item& item = items[i];
      std::unique_ptr<Object>& group = groups[item.group];
      if (!group)
        group = std::make_unique<Object>(written(
            item.group.empty() ? H5Oopen(file, "/", H5P_DEFAULT)
                               : H5Gcreate2(file, item.group.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            fmt::format("the group '{}'", item.group)));
      if (item.count)
        write_tensor(*group, {item.name, {}, std::vector<int64_t>{*item.count}});
      else if (value_bytes(item) > 0)
        all.places.emplace_back(reserve(*group, item), i);
    }
  }  // closing finishes the structures; flushing would fill the room for values, too
  std::ranges::sort(all.places);
  all.size = file_size(all.structures);
  return all;
}

// Nothing is written to `bytes`: the file is read only.
hid_t open_in_memory(std::string& bytes, const std::string& origin) {
  const Properties access(H5Pcreate(H5P_FILE_ACCESS));
  use_memory(access, bytes);
  H5Pset_file_image(access, bytes.data(), bytes.size());
  const hid_t file = H5Fopen(next_name().c_str(), H5F_ACC_RDONLY, access);
  if (file < 0) fail(origin, "HDF5 can't open the file");
  return file;
}

std::vector<std::string> link_names(hid_t file, const std::string& origin) {
  const Object root(H5Oopen(file, "/", H5P_DEFAULT));
  if (root < 0) fail(origin, "HDF5 can't list the file");
  const Properties creation(H5Gget_create_plist(root));
  unsigned order = 0;
  H5Pget_link_creation_order(creation, &order);
  const H5_index_t index = order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  H5G_info_t group;
  if (H5Gget_info(root, &group) < 0) fail(origin, "HDF5 can't list the file");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < group.nlinks; ++i) {
    std::array<char, 1024> name;
    const ssize_t length =
        H5Lget_name_by_idx(root, ".", index, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
    if (length < 0) fail(origin, "HDF5 can't list the file");
    if (size_t(length) >= name.size()) fail(origin, fmt::format("a name of {} letters", length));
    names.emplace_back(name.data(), size_t(length));
  }
  return names;
}

// Links that lead out of the file, and data kept outside of it, are refused: a weight file is one file.
void check_is_dataset(hid_t file, const std::string& name, const std::string& origin) {
  H5L_info_t link;
  if (H5Lget_info(file, name.c_str(), &link, H5P_DEFAULT) < 0)
    fail(origin, fmt::format("HDF5 can't find '{}'", name));
  if (link.type != H5L_TYPE_HARD) {
    throw Error(fmt::format("{}: '{}' is a link, not a dataset", origin, name), "store the tensor itself");
  }
  const Object object(H5Oopen(file, name.c_str(), H5P_DEFAULT));
  if (object < 0) fail(origin, fmt::format("HDF5 can't open '{}'", name));
  if (H5Iget_type(object) != H5I_DATASET) {
    throw Error(fmt::format("{}: '{}' is a group, not a dataset", origin, name),
                "write one dataset per tensor, named as in the state_dict: layer1.0.conv1.weight");
  }
}

bool is_float(hid_t dataset, const std::string& name, const std::string& origin) {
  const Type type(H5Dget_type(dataset));
  const H5T_class_t kind = H5Tget_class(type);
  const size_t size = H5Tget_size(type);
  if (kind == H5T_FLOAT && size == 4) return true;
  if (kind == H5T_INTEGER && size == 8 && H5Tget_sign(type) == H5T_SGN_2) return false;
  const std::string is = kind == H5T_FLOAT     ? fmt::format("float{}", 8 * size)
                         : kind == H5T_INTEGER ? fmt::format("an integer of {} bits", 8 * size)
                                               : std::string("of another type");
  throw Error(fmt::format("{}: the dataset '{}' is {}", origin, name, is),
              "weights are float32, counts int64");
}

std::vector<int64_t> shape_of(hid_t dataset, const std::string& name, const std::string& origin) {
  const Space space(H5Dget_space(dataset));
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SCALAR && kind != H5S_SIMPLE) fail(origin, fmt::format("the dataset '{}' is empty", name));
  std::array<hsize_t, H5S_MAX_RANK> extents;
  const int rank = H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  if (rank < 0) fail(origin, fmt::format("the dataset '{}' has no shape", name));
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) shape.push_back(int64_t(std::min<hsize_t>(extents[size_t(i)], INT64_MAX)));
  return shape;
}

// How many bytes the file could hold of a dataset: as many as it has, or so many times what is stored compressed.
int64_t most_bytes(hid_t dataset, int64_t file_bytes, const std::string& name, const std::string& origin) {
  const Properties creation(H5Dget_create_plist(dataset));
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (H5Pget_external_count(creation) > 0 ||
      (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT)) {
    throw Error(fmt::format("{}: the data of '{}' lie in another file", origin, name),
                "store the tensor itself");
  }
  const int64_t stored = int64_t(std::min<hsize_t>(H5Dget_storage_size(dataset), hsize_t(file_bytes)));
  return layout == H5D_CHUNKED && H5Pget_nfilters(creation) > 0 ? stored * most_compression : file_bytes;
}

NamedTensor read_tensor(hid_t file, const std::string& name, int64_t file_bytes, const std::string& origin) {
  check_is_dataset(file, name, origin);
  const Object dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  if (dataset < 0) fail(origin, fmt::format("HDF5 can't open the dataset '{}'", name));
  const int64_t most = most_bytes(dataset, file_bytes, name, origin);
  NamedTensor tensor =
      make_tensor(name, shape_of(dataset, name, origin), is_float(dataset, name, origin), most, origin);
  if (tensor.elements() == 0) return tensor;
  const hid_t in_memory = tensor.is_float() ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64;
  if (H5Dget_storage_size(dataset) == 0 ||
      H5Dread(dataset, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data()) < 0)
    fail(origin, fmt::format("HDF5 can't read the dataset '{}'", name));
  return tensor;
}

}  // namespace

// The signature stands at 0, or after a user's block of 512, 1024, 2048 … bytes.
bool is_hdf5(const std::string& bytes) {
  for (size_t at = 0; at + signature.size() <= bytes.size(); at = at == 0 ? 512 : 2 * at)
    if (std::string_view(bytes).substr(at, signature.size()) == signature) return true;
  return false;
}

std::string to_hdf5(const Weights& weights) {
  const Session session;
  std::string bytes;
  {
    const File file(create_in_memory(bytes));
    for (const NamedTensor& tensor : weights) write_tensor(file, tensor);
    written(H5Fflush(file, H5F_SCOPE_GLOBAL), "the file");
  }  // closing marks it as complete
  const uint64_t size = file_size(bytes);
  ANTICHAIN_CHECK(size <= bytes.size(), "HDF5 wrote the whole file");
  bytes.resize(size);
  return bytes;
}

Weights from_hdf5(const std::string& bytes, const std::string& origin) {
  const Session session;
  const File file(open_in_memory(const_cast<std::string&>(bytes), origin));
  Weights weights;
  for (const std::string& name : link_names(file, origin))
    weights.add(read_tensor(file, name, int64_t(bytes.size()), origin));
  return weights;
}

void write_hdf5(const std::vector<Hdf5Item>& items, const std::function<const float*(size_t)>& values,
                const std::function<void(std::string_view)>& sink) {
  const Outline file = outline(items);
  const std::string zeros(4096, '\0');
  uint64_t at = 0;
  const auto pass_structures = [&](uint64_t end) {
    for (uint64_t next = 0; at < end; at = next) {
      const bool there = at < file.structures.size();
      next = std::min(end, there ? file.structures.size() : at + zeros.size());
      sink(std::string_view(there ? file.structures : zeros).substr(there ? at : 0, next - at));
    }
  };
  for (const auto& [place, i] : file.places) {
    ANTICHAIN_CHECK(place >= at, "HDF5 gives no place twice");
    pass_structures(place);
    const auto bytes = size_t(value_bytes(items[i]));
    sink({reinterpret_cast<const char*>(values(i)), bytes});
    at = place + bytes;
  }
  pass_structures(file.size);
}

std::vector<NamedTensor> read_hdf5(const std::string& bytes, const std::vector<std::string>& paths,
                                   const std::string& origin) {
  const Session session;
  const File file(open_in_memory(const_cast<std::string&>(bytes), origin));
  std::vector<NamedTensor> tensors;
  for (const std::string& path : paths)
    tensors.push_back(read_tensor(file, path, int64_t(bytes.size()), origin));
  return tensors;
}

}  // namespace antichain
