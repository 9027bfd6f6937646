#include "framework/files/hdf5_attributes.h"

#include <fmt/format.h>

#include <cstdint>

#include "framework/error.h"
#include "framework/files/hdf5_session.h"

namespace antichain::hdf5 {
namespace {

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

}  // namespace

std::optional<std::vector<std::string>> string_attribute(hid_t file, const std::string& file_name,
                                                         const std::string& path, const std::string& name) {
  return read_attribute(file, file_name, path, name, read_strings);
}

std::optional<std::vector<double>> number_attribute(hid_t file, const std::string& file_name,
                                                    const std::string& path, const std::string& name) {
  return read_attribute(file, file_name, path, name, read_numbers);
}

}  // namespace antichain::hdf5
