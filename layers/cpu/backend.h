// The "cpu" backend uses host memory, oneDNN kernels and OpenMP threads.
//
// Each operator's file in this folder defines one function that returns its entry of the kernel table. Those
// that use oneDNN are declared here; those of our own loops are in layers/cpu/light_kernels.h.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "framework/backend.h"

namespace antichain {

// Makes backend("cpu") available; calling it again changes nothing.
void register_cpu_backend();

namespace cpu {

using Operators = std::map<std::string, KernelEntry, std::less<>>;
Operators operators();
using Updates = std::map<std::string, MakeUpdate, std::less<>>;
Updates updates();

KernelEntry conv2d_entry();
KernelEntry conv_transpose2d_entry();
KernelEntry linear_entry();
KernelEntry reorder_entry();

}  // namespace cpu
}  // namespace antichain
