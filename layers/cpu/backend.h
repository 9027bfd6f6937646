// The "cpu" backend: host memory, oneDNN kernels, OpenMP threads.
//
// Each operator's file in this folder defines one function that returns its entry of the kernel table: those
// that stand on oneDNN are declared here, our own loops in layers/cpu/light_kernels.h.
#pragma once

#include "framework/backend.h"

namespace antichain {

// Makes backend("cpu") available; calling it again changes nothing.
void register_cpu_backend();

namespace cpu {

KernelEntry conv2d_entry();
KernelEntry linear_entry();
KernelEntry reorder_entry();

}  // namespace cpu
}  // namespace antichain
