// This pass says which version of the weights each forward and backward reads.
//
// Version v of a stage's weights is what v updates have made of them, and the n-th step of a run makes
// version n + 1 of version n. With a delay of d the n-th step computes with version n − d, or the first where
// there is none. So a version follows from the step alone, and a run without a pipeline reads the same. A
// stage keeps its d last versions besides the newest, also where the pipeline has drained and newer ones are
// there.
#pragma once

#include <map>

#include "pipeline/program/program.h"

namespace antichain {

// Sets Instruction::step and Instruction::behind. Throws Error where an instruction reads what no update
// before it has made.
void add_versions(RankProgram&, const Schedule&);

// Returns by node how many older versions of its weights the rank keeps, where there are any.
std::map<int, int> older_versions(const Schedule&, const Plan&, int rank);

}  // namespace antichain
