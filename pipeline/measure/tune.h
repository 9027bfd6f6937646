// Which engine would be the fastest for each pass of each operator, by timing, beside the one that the
// device's rule takes without any (framework/alternatives.h). It tells; what runs in training does not
// change: two runs agree whoever has timed what.
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
  Shape input;                       // of the node
  int nodes = 1;                     // of the same operator and shapes
  std::vector<TunedEngine> engines;  // the first is the rule's

  const TunedEngine& by_rule() const { return engines.front(); }
  const TunedEngine& fastest() const;
};

// Error where the device has one engine for everything.
void check_tunable(const Backend&);
// In the order of the nodes. Engines take turns, so none finds its operands in a warmer cache than the others
// do. An engine that fails is told with its reason, and the others go on; where the device itself is broken
// by it, a warning says so, and the passes before it are returned.
std::vector<TunedPass> tune(const Graph& lowered, Context&, Progress&);

}  // namespace antichain
