// These functions check what every transport promises. All ranks of a job call them together: the thread
// transport's tests and the MPI ones run the same list. A broken promise throws.
#pragma once

#include <span>

#include "pipeline/transport/transport.h"

namespace antichain::test {

struct TransportCheck {
  const char* name;
  void (*run)(Transport&);
  friend void PrintTo(const TransportCheck& c, std::ostream* out) { *out << c.name; }
};

// They work on any number of ranks, one included. Messages are of 1 MiB and more where MPI's own buffers
// could hide a deadlock.
std::span<const TransportCheck> transport_checks();

}  // namespace antichain::test
