#include "framework/files/hdf5_session.h"

#include <fmt/format.h>

#include <string_view>

#include "framework/error.h"

namespace antichain::hdf5 {

std::mutex& Session::mutex() {
  static std::mutex one;
  return one;
}

hid_t create_group(hid_t parent, const char* name) {
  const Properties creation(H5Pcreate(H5P_GROUP_CREATE));
  H5Pset_obj_track_times(creation, 0);
  return H5Gcreate2(parent, name, H5P_DEFAULT, creation, H5P_DEFAULT);
}

std::string reason() {
  std::string text;
  const auto keep_last = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &text);
  // The system's message is quoted within some lines of addresses and sizes.
  constexpr std::string_view quote = "error message = '";
  if (const size_t at = text.find(quote); at != std::string::npos) {
    text.erase(0, at + quote.size());
    text = text.substr(0, text.find('\''));
  }
  return text.empty() ? "" : fmt::format(" ({})", text);
}

void fail(const std::string& file, const std::string& what, const std::string& hint) {
  throw Error(fmt::format("{}: {}{}", file, what, reason()), hint);
}

}  // namespace antichain::hdf5
