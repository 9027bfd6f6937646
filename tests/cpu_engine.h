// This is the engine that runs on every machine. It is registered when a test first asks for it.
#pragma once

#include "framework/backend.h"
#include "layers/cpu/backend.h"

namespace antichain {

inline const Backend& cpu_engine() {
  register_cpu_backend();
  return backend("cpu");
}

}  // namespace antichain
