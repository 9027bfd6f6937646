#include "framework/cache_folder.h"

#include <cstdlib>

namespace antichain {

std::string user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/antichain";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/antichain";
  return "";
}

}  // namespace antichain
