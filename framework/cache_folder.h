// Says where files are kept that can be made again: data sets, profiles, compiled plans (freedesktop.org,
// "XDG Base Directory Specification", version 0.8, 2021).
#pragma once

#include <string>

namespace antichain {

// Returns $XDG_CACHE_HOME/antichain, else $HOME/.cache/antichain, or "" where neither variable is set.
std::string user_cache_folder();

// Returns the user's own folder where all have theirs, antichain-cache-UID in $TMPDIR or /tmp, which it makes
// where there is none. Throws Error when what is there is no folder, another user's, or may be written by
// others: its contents could be anyone's.
std::string shared_cache_folder();

}  // namespace antichain
