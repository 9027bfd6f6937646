// Fusion: a chain of nodes becomes one where the operator knows how (Op::then) and the engine has the kernel
// (KernelEntry::fuses). What a kernel does to a number while it is in a register needs no pass over memory of
// its own.
//
//   bn ─ relu ─▶           bn(…, relu) ─▶
//   bn ─ add ─ relu ─▶     bn(…, add, relu) ─▶     the add's other operand becomes the second input
//         │
//       other
//   conv ─ relu ─▶         conv(…, relu) ─▶        linear layers likewise
//
// A node joins its only consumer, and only if that uses it once. The result stands where the last of the
// chain stood, so its inputs are earlier nodes. It keeps the name of the node that has parameters (parameters
// are named by their node), else the last's; the other names stay known as `absorbed`. The first node of the
// graph that can has an add.
#pragma once

#include "framework/graph.h"

namespace antichain {

// The same function of the same parameters; part of lower().
Graph fuse(const Graph&, const Backend&);

}  // namespace antichain
