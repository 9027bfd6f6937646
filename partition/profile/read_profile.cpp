#include "partition/profile/read_profile.h"

namespace antichain {

Profile read_profile(const std::string& text, const std::string& origin, double weight_share) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && text[first] == '{';
  return json ? profile_from_json(text, origin) : profile_from_pipedream(text, origin, weight_share);
}

}  // namespace antichain
