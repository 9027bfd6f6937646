// Modules bring in a device at run time: libantichain_cuda.so links the CUDA libraries, the program does not,
// so one program serves login nodes, CPU nodes and GPU nodes.
#pragma once

#include <string>

namespace antichain {

// Loads libantichain_<device>.so from the folder of libantichain, else from the system's search path, and
// lets it register its backend. Returns the reason why the device is not there, or "" when it is. Loading
// twice is harmless.
std::string load_module(const std::string& device);

}  // namespace antichain

// What a module defines, with C linkage:
//   const char* antichain_module_version()   must equal version(): a module of another build is refused
//   const char* antichain_register_module()  registers the backend; the reason why it can't, or nullptr
