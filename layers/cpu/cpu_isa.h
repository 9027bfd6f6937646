// Limits the instructions that the CPU engine may use, by oneDNN's names. They decide layouts, kernels and so
// the last bits of every number, in oneDNN and in our own loops, which ask oneDNN (layers/cpu/dnnl.h).
#pragma once

#include <string>
#include <vector>

namespace antichain {

// Returns the names from the least to the most; "avx512" is understood as "avx512_core".
std::vector<std::string> cpu_isa_names();

// Limits the process to these instructions, whatever ONEDNN_MAX_CPU_ISA says. Call it before anything is
// computed. Throws Error when the name is unknown, or oneDNN has already chosen.
void limit_cpu_isa(const std::string& name);

// Returns what the process uses: the most that its processor has and that is allowed, or "other" where no
// name fits.
std::string cpu_isa();

// Returns the most that all of these have: "avx2" for {"avx2", "avx512_core"}; "" where they have none in
// common.
std::string common_cpu_isa(const std::vector<std::string>& names);

}  // namespace antichain
