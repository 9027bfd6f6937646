#include "framework/hdf5_session.h"

#include <fmt/format.h>

namespace antichain::hdf5 {

std::mutex& Session::mutex() {
  static std::mutex one;
  return one;
}

std::string reason() {
  std::string text;
  const auto keep_last = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &text);
  return text.empty() ? "" : fmt::format(" ({})", text);
}

}  // namespace antichain::hdf5
