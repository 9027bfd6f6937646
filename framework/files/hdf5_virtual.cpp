#include "framework/files/hdf5_virtual.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>

#include "framework/error.h"
#include "framework/files/hdf5_session.h"

namespace antichain::hdf5 {
namespace {

constexpr size_t most_source_files = 128;
constexpr hssize_t most_blocks = 1 << 16;

size_t mappings(hid_t creation) {
  size_t count = 0;
  return H5Pget_virtual_count(creation, &count) < 0 ? 0 : count;
}

std::string text_of(ssize_t (*get)(hid_t, size_t, char*, size_t), hid_t creation, size_t i) {
  const ssize_t length = get(creation, i, nullptr, 0);
  std::string text(length > 0 ? size_t(length) + 1 : 0, '\0');
  if (length > 0) get(creation, i, text.data(), text.size());
  return text.c_str();
}

// HDF5 looks beside the file that has the virtual dataset, whose own name is ".".
std::string place_of(const std::string& source, const std::string& file) {
  return source == "." ? file : (std::filesystem::path(file).parent_path() / source).string();
}

// Returns the shape in which a selection fits; none where all is selected. (A file does not say how large a
// source is.)
std::vector<int64_t> shape_around(hid_t space) {
  std::array<hsize_t, H5S_MAX_RANK> first, last;
  if (H5Sget_select_type(space) == H5S_SEL_ALL || H5Sget_select_bounds(space, first.data(), last.data()) < 0)
    return {};
  std::vector<int64_t> shape;
  for (int d = 0; d < H5Sget_simple_extent_ndims(space); ++d) shape.push_back(int64_t(last[size_t(d)]) + 1);
  return shape;
}

// Adds the selection of `one` to that of `all`. Returns whether HDF5 could.
bool add_selection(hid_t all, hid_t one) {
  if (H5Sget_select_type(one) == H5S_SEL_ALL) return H5Sselect_all(all) >= 0;
  const hssize_t blocks =
      H5Sget_select_type(one) == H5S_SEL_HYPERSLABS ? H5Sget_select_hyper_nblocks(one) : -1;
  const int rank = H5Sget_simple_extent_ndims(one);
  if (blocks < 0 || blocks > most_blocks || rank < 1 || rank != H5Sget_simple_extent_ndims(all)) return false;
  std::vector<hsize_t> corners(size_t(blocks) * 2 * size_t(rank));
  if (H5Sget_select_hyper_blocklist(one, 0, hsize_t(blocks), corners.data()) < 0) return false;
  for (const hsize_t* first = corners.data(); first < corners.data() + corners.size(); first += 2 * rank) {
    std::array<hsize_t, H5S_MAX_RANK> count;
    for (int d = 0; d < rank; ++d) count[size_t(d)] = first[rank + d] - first[d] + 1;
    if (H5Sselect_hyperslab(all, H5S_SELECT_OR, first, nullptr, count.data(), nullptr) < 0) return false;
  }
  return true;
}

}  // namespace

bool VirtualSource::fits(const std::vector<int64_t>& shape) const {
  if (!most.empty()) return std::ranges::equal(most, shape, std::ranges::less_equal());
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies()) == values;
}

std::vector<VirtualSource> virtual_sources(hid_t dataset, hid_t creation, const std::string& file,
                                           const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{}: the virtual dataset '{}' {}", file, path, why), "store the data themselves");
  };
  if (const char* prefix = std::getenv("HDF5_VDS_PREFIX"); prefix != nullptr && *prefix != '\0')
    refuse("might be read from another folder, because HDF5_VDS_PREFIX is set");
  const Space covered(H5Dget_space(dataset));
  const hssize_t elements = H5Sget_simple_extent_npoints(covered);
  H5Sselect_none(covered);
  std::vector<VirtualSource> sources;
  std::set<std::string> files;
  for (size_t i = 0; i < mappings(creation); ++i) {
    const std::string name = text_of(H5Pget_virtual_filename, creation, i),
                      source = text_of(H5Pget_virtual_dsetname, creation, i);
    const Space there(H5Pget_virtual_srcspace(creation, i)), here(H5Pget_virtual_vspace(creation, i));
    if (name.find('%') != std::string::npos || source.find('%') != std::string::npos ||
        H5Sget_select_npoints(here) < 0 || !add_selection(covered, here))
      refuse("has no fixed number of sources");
    sources.push_back(
        {place_of(name, file), source, int64_t(H5Sget_select_npoints(here)), shape_around(there)});
    files.insert(sources.back().file);
  }
  if (H5Sget_select_npoints(covered) != elements)
    refuse(fmt::format("has {} values, but its sources cover {}", elements, H5Sget_select_npoints(covered)));
  if (files.size() > most_source_files)
    refuse(
        fmt::format("is put together from {} files, and {} are the most", files.size(), most_source_files));
  return sources;
}

void open_sources(hid_t dataset, hid_t creation, const std::string& file, const std::string& path) {
  const Space one(H5Screate(H5S_SCALAR));
  const Type type(H5Dget_type(dataset));
  std::vector<std::byte> value(H5Tget_size(type));
  for (size_t i = 0; i < mappings(creation); ++i) {
    const Space here(H5Pget_virtual_vspace(creation, i)), point(H5Dget_space(dataset));
    std::array<hsize_t, H5S_MAX_RANK> first{}, last{};
    if (H5Sget_select_bounds(here, first.data(), last.data()) < 0 ||
        H5Sselect_elements(point, H5S_SELECT_SET, 1, first.data()) < 0 ||
        H5Dread(dataset, type, one, point, H5P_DEFAULT, value.data()) < 0)
      fail(file, fmt::format("HDF5 can't read a source of '{}'", path));
  }
}

}  // namespace antichain::hdf5
