// These functions put actions and messages into words that name nodes, for the watchdog and for reports of
// errors.
#pragma once

#include <string>

#include "framework/graph.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

std::string describe(const Message&, const Graph&);  // "activation of node layer1.0.conv1"
std::string describe(const Action&, const Graph&);   // "forward of micro-batch 3"

}  // namespace antichain
