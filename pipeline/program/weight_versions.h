// This pass says which version of the weights each forward and backward reads.
//
// Version v of a stage's weights is what v updates have made of them, and the n-th step of a run makes
// version n + 1 of version n. With a delay of d the n-th step computes with version n − d, or the first where
// there is none. So a version follows from the step alone, and a run without a pipeline reads the same. A
// stage keeps its d last versions besides the newest, also where the pipeline has drained and newer ones are
// there.
//
// The gradient of the n-th step is applied to version n. So where weights are predicted
// (framework/prediction.h), what is read of version n − d is predicted by d steps. It is predicted when the
// version is made, so the stage keeps the predictions of older versions, and not these.
#pragma once

#include <map>

#include "framework/prediction.h"
#include "pipeline/program/program.h"

namespace antichain {

// Sets Instruction::step and Instruction::weights. Throws Error where an instruction reads what no update
// before it has made.
void add_versions(RankProgram&, const Schedule&);

// KeptVersions are what a rank keeps of the weights besides the newest.
struct KeptVersions {
  std::map<int, int> older = {};              // by node: how many versions, where there are any
  const PredictionMethod* predict = nullptr;  // how each version is predicted, by as many steps

  // Returns how many sets of weights stand for so many older versions.
  int sets(int older_ones) const { return older_ones + (predict != nullptr); }
};
KeptVersions kept_versions(const Schedule&, const Plan&, int rank);

}  // namespace antichain
