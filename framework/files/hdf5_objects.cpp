#include "framework/files/hdf5_objects.h"

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

// `path` is that of hard links to something.
bool is_a(hid_t file, const std::string& path, H5I_type_t type, const std::string& name) {
  const Object object(H5Oopen(file, path.c_str(), H5P_DEFAULT));
  if (object < 0)
    fail(name, fmt::format("HDF5 can't open '{}'", path),
         "it is damaged, or of a newer HDF5: h5py.File(…, libver=(\"earliest\", \"v110\")) writes older "
         "files");
  return H5Iget_type(object) == type;
}

// Returns the value of a link that is not hard.
std::string target_of(hid_t file, const std::string& link, const H5L_info_t& info, const std::string& name) {
  std::string value(info.u.val_size, '\0');
  if (H5Lget_val(file, link.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0)
    fail(name, fmt::format("HDF5 can't read the link '{}'", link));
  if (info.type == H5L_TYPE_SOFT) return value.c_str();
  const char *other = "?", *object = "";
  unsigned flags = 0;
  if (info.type == H5L_TYPE_EXTERNAL)
    H5Lunpack_elink_val(value.data(), value.size(), &flags, &other, &object);
  throw Error(fmt::format("{}: '{}' is a link to the file {}", name, link, other),
              "store the dataset itself, or a virtual one (h5py.VirtualLayout)");
}

constexpr int64_t most_values = int64_t(1) << 20;  // of an attribute

using AttributeHandle = Handle<H5Aclose>;

// Returns how many values the attribute has. Throws Error when it can't be read.
int64_t values_of(hid_t attribute, const std::string& file, const std::string& name) {
  const Space space(H5Aget_space(attribute));
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 1 || count > most_values)
    fail(file, fmt::format("the attribute '{}' has {} values", name, count));
  return int64_t(count);
}

std::vector<std::string> read_strings(hid_t attribute, const std::string& file, const std::string& name) {
  const Type stored(H5Aget_type(attribute));
  const int64_t count = values_of(attribute, file, name);
  if (H5Tget_class(stored) != H5T_STRING)
    fail(file, fmt::format("the attribute '{}' is no text", name), "write strings");
  std::vector<std::string> values;
  if (H5Tis_variable_str(stored) > 0) {
    const Space space(H5Aget_space(attribute));
    std::vector<char*> texts(size_t(count), nullptr);
    if (H5Aread(attribute, stored, texts.data()) < 0)
      fail(file, fmt::format("HDF5 can't read the attribute '{}'", name));
    for (const char* text : texts) values.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(stored, space, H5P_DEFAULT, texts.data());
    return values;
  }
  const size_t size = H5Tget_size(stored);
  if (size > size_t(most_values))
    fail(file, fmt::format("the attribute '{}' is {} letters long", name, size));
  std::string bytes(size * size_t(count), '\0');
  if (H5Aread(attribute, stored, bytes.data()) < 0)
    fail(file, fmt::format("HDF5 can't read the attribute '{}'", name));
  for (int64_t i = 0; i < count; ++i) {
    const std::string text = bytes.substr(size_t(i) * size, size);
    values.push_back(text.substr(0, text.find('\0')));
  }
  return values;
}

std::vector<double> read_numbers(hid_t attribute, const std::string& file, const std::string& name) {
  const Type type(H5Aget_type(attribute));
  if (H5Tget_class(type) != H5T_FLOAT && H5Tget_class(type) != H5T_INTEGER)
    fail(file, fmt::format("the attribute '{}' is no number", name), "write numbers");
  std::vector<double> values(size_t(values_of(attribute, file, name)));
  if (H5Aread(attribute, H5T_NATIVE_DOUBLE, values.data()) < 0)
    fail(file, fmt::format("HDF5 can't read the attribute '{}'", name));
  return values;
}

// Returns what `read` makes of the attribute, where there is one of this name.
template <class Read>
auto read_attribute(hid_t file, const std::string& file_name, const std::string& path,
                    const std::string& name, Read&& read)
    -> std::optional<decltype(read(file, file_name, name))> {
  const Session session;
  if (H5Aexists_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT) <= 0) return {};
  const AttributeHandle attribute(
      H5Aopen_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  if (attribute < 0) fail(file_name, fmt::format("HDF5 can't open the attribute '{}'", name));
  return read(attribute, file_name, name);
}

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

std::string resolved(hid_t file, const std::string& path, const std::string& name) {
  constexpr int most_links = 16;
  std::string link, left = path, done;  // done: hard links to a group
  for (int links = 0; !left.empty();) {
    const size_t end = left.find('/');
    const std::string part = left.substr(0, end);
    left = end == std::string::npos ? "" : left.substr(end + 1);
    if (part.empty() || part == ".") continue;
    const std::string here = done + "/" + part;
    H5L_info_t info;
    if ((!done.empty() && !is_a(file, done, H5I_GROUP, name)) ||
        H5Lexists(file, here.c_str(), H5P_DEFAULT) <= 0 ||
        H5Lget_info(file, here.c_str(), &info, H5P_DEFAULT) < 0) {
      if (link.empty()) return "";
      throw Error(fmt::format("{}: '{}' is a link, and there is no '{}'", name, link, here),
                  "link to a dataset of this file");
    }
    if (info.type == H5L_TYPE_HARD) {
      done = here;
      continue;
    }
    const std::string target = target_of(file, here, info, name);
    if (++links > most_links)
      throw Error(fmt::format("{}: '{}' is a link that leads to more than {} others", name, path, most_links),
                  "link to the dataset itself");
    if (link.empty()) link = here;
    if (target.starts_with('/')) done.clear();
    left = target + "/" + left;
  }
  return !done.empty() && is_a(file, done, H5I_DATASET, name) ? done : "";
}

std::optional<std::vector<std::string>> string_attribute(hid_t file, const std::string& file_name,
                                                         const std::string& path, const std::string& name) {
  return read_attribute(file, file_name, path, name, read_strings);
}

std::optional<std::vector<double>> number_attribute(hid_t file, const std::string& file_name,
                                                    const std::string& path, const std::string& name) {
  return read_attribute(file, file_name, path, name, read_numbers);
}

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
