// Reads weights from HDF5. Every size that a file claims is checked against the file's own size before memory
// is allocated for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "framework/error.h"
#include "framework/files/hdf5.h"
#include "framework/files/hdf5_session.h"

namespace antichain {
using namespace hdf5;
namespace {

// Links are none: they may lead anywhere.
bool is_group(hid_t file, const std::string& name) {
  H5L_info_t link;
  if (H5Lget_info(file, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) return false;
  const Object object(H5Oopen(file, name.c_str(), H5P_DEFAULT));
  return object >= 0 && H5Iget_type(object) == H5I_GROUP;
}

constexpr int64_t most_depth = 16, most_names = 200'000;

// Lists a group. A group in it is listed in its place; an empty one, or one that leads back to itself, stays.
std::vector<std::string> link_names(hid_t file, const std::string& origin, const std::string& path = "/") {
  const Object root(H5Oopen(file, path.c_str(), H5P_DEFAULT));
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
    const std::string full = path.substr(1) + std::string(name.data(), size_t(length));
    std::vector<std::string> inner;
    if (is_group(file, full) && std::ranges::count(full, '/') < most_depth)
      inner = link_names(file, origin, "/" + full + "/");
    if (inner.empty()) inner.push_back(full);
    names.insert(names.end(), inner.begin(), inner.end());
    if (std::ssize(names) > most_names) fail(origin, fmt::format("more than {} names", most_names));
  }
  return names;
}

// Links that lead out of the file, and data kept outside of it, are refused: a weight file is one file.
void check_is_dataset(hid_t file, const std::string& name, const std::string& origin) {
  for (size_t end = 0; end != std::string::npos;) {  // each group on the way to it, then itself
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    H5L_info_t link;
    if (H5Lget_info(file, part.c_str(), &link, H5P_DEFAULT) < 0)
      fail(origin, fmt::format("HDF5 can't find '{}'", part));
    if (link.type != H5L_TYPE_HARD)
      throw Error(fmt::format("{}: '{}' is a link, not a {}", origin, part,
                              end == std::string::npos ? "dataset" : "group"),
                  "store the tensor itself");
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

// Returns how many bytes of a dataset the file could hold: as many as the file has, or most_compression times
// what is stored compressed.
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

int64_t bytes_of(const std::vector<int64_t>& shape, int64_t each) {
  double bytes = double(each);
  for (const int64_t extent : shape) bytes *= double(extent);
  return bytes < 1e18 ? int64_t(bytes) : INT64_MAX;
}

NamedTensor read_tensor(hid_t file, const std::string& name, int64_t file_bytes, const std::string& origin,
                        int64_t room = INT64_MAX) {
  check_is_dataset(file, name, origin);
  const Object dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  if (dataset < 0) fail(origin, fmt::format("HDF5 can't open the dataset '{}'", name));
  const int64_t most = most_bytes(dataset, file_bytes, name, origin);
  const bool is_real = is_float(dataset, name, origin);
  const std::vector<int64_t> shape = shape_of(dataset, name, origin);
  if (bytes_of(shape, is_real ? 4 : 8) > room)
    throw Error(fmt::format("{}: with the tensor '{}' of {} it has far more than the network", origin, name,
                            fmt::join(shape, " x ")),
                "choose the model it was made for");
  NamedTensor tensor = make_tensor(name, shape, is_real, most, origin);
  if (tensor.elements() == 0) return tensor;
  const hid_t in_memory = tensor.is_float() ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64;
  if (H5Dget_storage_size(dataset) == 0 ||
      H5Dread(dataset, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data()) < 0)
    fail(origin, fmt::format("HDF5 can't read the dataset '{}'", name));
  return tensor;
}

}  // namespace

bool is_hdf5(const std::string& bytes) { return find_superblock(reads_memory(bytes)).has_value(); }

Weights from_hdf5(const std::string& bytes, const std::string& origin, int64_t most_bytes) {
  const Session session;
  const File file(open_in_memory(const_cast<std::string&>(bytes), origin));
  Weights weights;
  for (const std::string& name : link_names(file, origin)) {
    weights.add(read_tensor(file, name, int64_t(bytes.size()), origin, most_bytes));
    most_bytes -= weights[weights.size() - 1].bytes();
  }
  return weights;
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
