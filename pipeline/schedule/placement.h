// A placement says which stages a rank has under a policy: one, or several of which each is followed on
// another rank.
//
//   4 ranks       one_stage    loop, 2 a rank    vee
//   rank 0        0            0 4               0     7
//   rank 1        1            1 5               1   6
//   rank 2        2            2 6               2 5
//   rank 3        3            3 7               3 4
#pragma once

#include <string_view>
#include <vector>

namespace antichain {

enum class Placement {
  one_stage,  // a rank has one stage
  any,        // a rank has one stage, or several in any way
  loop,       // stage s is on rank s mod p: stages go round the ranks, V times
  vee,        // stages go along the ranks and back: two a rank, the first and the last on the same rank
};

// Returns the position (0 to p − 1) that stage s of all has among p ranks.
int position_of_stage(Placement, int stage, int ranks);

// Returns how many stages a rank can have, as words: "1", "any number", "2 or more" or "2".
std::string_view stages_a_rank(Placement);
// Returns how many stages a rank has under the placement, where nobody says it.
int default_chunks(Placement);
// Throws a usage Error when a rank can't have so many stages. `policy` is the name for the sentence.
void check_chunks(Placement, int chunks, std::string_view policy);

// Throws a usage Error naming the first rank whose stages are not those of the placement. Ranks may come in
// any order: with a vee, rank 3 may have the stages 0 and 7. `stages` are those of each rank, ascending.
void check_placement(Placement, const std::vector<std::vector<int>>& stages, std::string_view policy);

}  // namespace antichain
