// This pass says how many copies each ring has, and when a receive may be posted.
//
// Copies are used in turn: the rank's n-th micro-batch of a stage has copy n mod copies. Its copy may be
// written again when the rank's last action that reads or writes it is done and, where it was sent, when the
// peer has received it. That a write of a later micro-batch certainly comes after the peer's recv follows
// from the schedule alone (pipeline/schedule/happens_before.h), so reusing a copy never waits on a peer. What
// is received has one copy more, so that receives are posted ahead.
#pragma once

#include "pipeline/program/program.h"

namespace antichain {

// Sets Buffer::copies of rings that have none yet, and Instruction::freed_by. Throws Error when an
// instruction reads what none before it has written, or when a receive can't be posted before it is awaited.
void add_rings(Program&, Feed);

}  // namespace antichain
