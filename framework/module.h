// Modules add a device at run time. libantichain_cuda.so links the CUDA libraries and the program does not,
// so that one program serves login nodes, CPU nodes and GPU nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antichain {

// Loads libantichain_<name>.so from the folder of libantichain, otherwise from the system's search path, and
// lets it register what it has. Returns the reason why it is unavailable, or "". Loading twice is harmless.
std::string load_module(const std::string& name);

// An EngineModule is an engine that comes in a module. Its devices are called `device`, or begin with it and
// a colon.
struct EngineModule {
  std::string title;                       // "CUDA", for people
  std::string device;                      // "cuda": the device that "auto" takes
  std::vector<std::string> other_devices;  // "cuda:tf32"
  std::string choice;                      // what --help says of these names
  std::string library;                     // "cuda" of libantichain_cuda.so
  std::string needs;                       // the hardware it needs: "GPU"
  int (*present)() = nullptr;              // how many of these the drivers of this host list

  bool makes(std::string_view device_name) const;
};

// Returns the table of all engines that come in modules, the fastest first.
const std::vector<EngineModule>& engine_modules();
// Returns the module whose engine makes this device, or nullptr.
const EngineModule* module_of(std::string_view device);
// Returns the devices that "auto" may take besides the CPU, for advice: "cuda".
std::string module_devices();

}  // namespace antichain

// A module defines these functions, with C linkage:
//   const char* antichain_module_version()   must equal version(): a module of another build is refused
//   const char* antichain_register_module()  registers the backend; the reason why it can't, or nullptr
