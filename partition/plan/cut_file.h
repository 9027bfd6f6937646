// A cut file says where a person cuts a model, and why. One file per model is shipped
// (models/cuts/<model>.cuts). It lies inside the library, so that an installed program has it.
//
//   # Comments give the person's reasons.
//   2: features.16
//   4: features.9 features.16 features.23        stages: the last node of every stage but the last
//
// Several lines for the same number of stages serve several forms of a model that name their nodes
// differently.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

struct CutLine {
  int line = 0;  // in the file, from 1
  int stages = 0;
  std::vector<std::string> last_nodes;  // stages − 1 of them
};

// Returns the lines in the order of the file. Throws Error with `origin` and the line where "stages:" is
// missing, the number of stages is not 2 or more, the names are not one fewer than the stages, or a name
// stands twice.
std::vector<CutLine> parse_cuts(std::string_view text, const std::string& origin);

// Returns the first line for so many stages (with `at_most`: for the most stages up to that many) all of
// whose names the profile has. Throws Error listing the stages that there are lines for.
const CutLine& choose_cut_line(const std::vector<CutLine>&, const Profile&, int stages, bool at_most);

// Returns the text of models/cuts/<model>.cuts, or nothing where none is shipped.
std::optional<std::string_view> shipped_cuts(std::string_view model);
std::vector<std::string> models_with_shipped_cuts();

}  // namespace antichain
