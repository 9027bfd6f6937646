// What the tests of the repository itself read.
#pragma once

#include <filesystem>

namespace antichain {

inline const std::filesystem::path root = ANTICHAIN_SOURCE_DIR;

}  // namespace antichain
