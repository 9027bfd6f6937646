// Says where files are kept that can be made again: data sets, profiles, compiled plans (freedesktop.org,
// "XDG Base Directory Specification", version 0.8, 2021).
#pragma once

#include <string>

namespace antichain {

// Returns $XDG_CACHE_HOME/antichain, else $HOME/.cache/antichain, or "" where neither variable is set.
std::string user_cache_folder();

}  // namespace antichain
