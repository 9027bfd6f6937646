// Declares the engines that a test executable runs whole networks on: each executable links one file that
// says which.
#pragma once

#include <string>

#include "framework/backend.h"

namespace antichain {

// Return nullptr where this machine lacks the device; `why` then says so.
const Backend* judged_engine(std::string& why);    // beside double precision
const Backend* compared_engine(std::string& why);  // beside the CPU's

}  // namespace antichain
