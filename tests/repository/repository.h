// The tests of the repository itself read files below this root.
#pragma once

#include <filesystem>

namespace antichain {

inline const std::filesystem::path root = ANTICHAIN_SOURCE_DIR;

}  // namespace antichain
