// This file times every engine for each pass of each operator and compares the fastest with the engine that
// the device's rule chooses without timing (framework/alternatives.h). Training is not changed by the result,
// so two runs agree whoever has timed what.
#pragma once

#include <string>
#include <vector>

#include "framework/graph.h"
#include "pipeline/host/progress.h"

namespace antichain {

struct TunedEngine {
  std::string engine;
  int64_t workspace_bytes = 0;
  double seconds = 0;        // median; infinite where it failed
  std::string failure = {};  // why it can't run
};

struct TunedPass {
  std::string node, pass;            // the first node of that kind
  Shape input;                       // the node's
  int nodes = 1;                     // of the same operator and shapes
  std::vector<TunedEngine> engines;  // the rule's choice is the first

  const TunedEngine& by_rule() const { return engines.front(); }
  const TunedEngine& fastest() const;
};

// Throws Error where the device has only one engine for everything.
void check_tunable(const Backend&);
// Returns the passes in the order of the nodes. Engines take turns, so that none finds its operands in a
// warmer cache than the others. An engine that fails is listed with its reason. If its failure breaks the
// device, a warning says so and the passes timed before are returned.
std::vector<TunedPass> compare_engines(const Graph& lowered, Context&, Progress&);

}  // namespace antichain
