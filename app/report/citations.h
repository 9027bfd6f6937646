// This file lists the works that a result depends on, for people who publish it.
#pragma once

#include <string>
#include <vector>

namespace antichain {

struct Cited {
  std::string model, method, schedule, data;  // by their names in this program
  std::string predict = "none", correction = "none";
};
// Returns one work a line, this program first. A model, method, schedule or data set of the user's own has
// none.
std::vector<std::string> citations(const Cited&);

// Returns authors and place of a work: "He et al., CVPR 2016". `antichain citations` (app/cli/commands.h)
// lists works in full.
std::string in_short(const std::string& work);

}  // namespace antichain
