// Writes weights as HDF5. HDF5 lays a file out in memory; the values of checkpoints follow later and do not
// pass through HDF5.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "framework/error.h"
#include "framework/files/hdf5.h"
#include "framework/files/hdf5_session.h"

namespace antichain {
using namespace hdf5;
namespace {

// HDF5 copies a chunk to add its checksum, so a large tensor has several. An extent is divided where that
// leaves it at least 16, so that what the last chunk lacks is less than a sixteenth; else it becomes 1.
std::vector<hsize_t> chunk_of(const NamedTensor& tensor) {
  constexpr int64_t most_bytes = 1 << 20, least_extent = 16;
  std::vector<hsize_t> chunk(tensor.shape.begin(), tensor.shape.end());
  int64_t bytes = tensor.bytes();
  for (hsize_t& extent : chunk) {
    if (bytes <= most_bytes) break;
    const int64_t all = int64_t(extent), row = bytes / all, most = most_bytes / row;
    const int64_t chunks = most < least_extent ? all : (all + most - 1) / most;
    extent = hsize_t((all + chunks - 1) / chunks);
    bytes = row * int64_t(extent);
  }
  return chunk;
}

void write_tensor(hid_t file, const NamedTensor& tensor) {
  const std::vector<hsize_t> extents(tensor.shape.begin(), tensor.shape.end());
  const bool scalar = extents.empty();
  const Space space(scalar ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(int(extents.size()), extents.data(), nullptr));
  const Properties creation(H5Pcreate(H5P_DATASET_CREATE)), links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_obj_track_times(creation, 0);
  H5Pset_char_encoding(links, H5T_CSET_UTF8);
  H5Pset_create_intermediate_group(links, 1);        // a name with slashes is a path
  if (scalar) H5Pset_layout(creation, H5D_COMPACT);  // within the structure, so under its checksum
  if (!scalar && tensor.elements() > 0) {
    H5Pset_chunk(creation, int(extents.size()), chunk_of(tensor).data());
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

// Reserves room for a dataset whose values come later; returns where in the file they belong.
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

// An Outline is a file without its values.
struct Outline {
  std::string structures;                           // its first bytes, zero where values go
  std::vector<std::pair<uint64_t, size_t>> places;  // where those of an item go, in the file's order
  uint64_t size = 0;                                // of the file
};

Outline outline(const std::vector<Hdf5Item>& items) {
  constexpr int64_t bytes_per_item = 512, bytes_besides = 4096;  // larger outlines still fit
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
            item.group.empty() ? H5Oopen(file, "/", H5P_DEFAULT) : create_group(file, item.group.c_str()),
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

}  // namespace

std::string to_hdf5(const Weights& weights) {
  const Session session;
  size_t room = 2 << 20;  // of structures; a file in memory grows by steps of 1 MiB
  for (const NamedTensor& tensor : weights) room += size_t(tensor.bytes() + tensor.bytes() / 16);
  std::string bytes;
  bytes.reserve(room);
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

}  // namespace antichain
