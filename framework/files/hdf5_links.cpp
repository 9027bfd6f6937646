#include "framework/files/hdf5_links.h"

#include <fmt/format.h>

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

}  // namespace antichain::hdf5
