// Fuses a chain of nodes into one where the operator knows how (Op::then) and the engine has the kernel
// (KernelEntry::fuses). What a kernel does to a number in a register needs no further pass over memory.
//
//   bn ─ relu ─▶           bn(…, relu) ─▶
//   bn ─ add ─ relu ─▶     bn(…, add, relu) ─▶     the add's other operand becomes the second input
//         │
//       other
//   bn ─ silu ─▶           bn(…, silu) ─▶          other functions likewise (layers/activate.h)
//   conv ─ relu ─▶         conv(…, relu) ─▶        linear layers likewise
//   sub ─ tanh ─▶          elementwise(…) ─▶       any formulas (layers/elementwise.h)
//
// A node joins its only consumer, and only if the consumer uses it once and has an output of the same shape.
// The result takes the place of the chain's last node, so its inputs are earlier nodes. It keeps the name of
// the first, which alone may have parameters, because parameters are named by their node. The other names
// stay known as `absorbed`; the last of them is that of the chain's last node. Where several nodes could take
// an add, the first in the graph gets it.
#pragma once

#include "framework/graph.h"

namespace antichain {

// Returns a graph that is the same function of the same parameters. lower() calls it.
Graph fuse(const Graph&, const Backend&);

}  // namespace antichain
