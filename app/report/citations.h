// What a result rests on, for whoever publishes it.
#pragma once

#include <string>
#include <vector>

namespace antichain {

struct Cited {
  std::string model, method, schedule, data;  // by their names here
};
// One work a line, this program first. Of a model, method, schedule or data set of the user's own nothing is
// known.
std::vector<std::string> citations(const Cited&);

// Returns authors and place of a work: "He et al., CVPR 2016". `antichain citations` (app/cli/commands.h)
// lists works in full.
std::string in_short(const std::string& work);

}  // namespace antichain
