// The instructions that the cpu engine may use, by oneDNN's names. They decide layouts, kernels and so the last bits of
// every number: oneDNN's own choice, and that of our loops, which ask oneDNN (layers/cpu/dnnl.h).
#pragma once

#include <string>
#include <vector>

namespace antichain {

// From the least to the most; "avx512" is understood as "avx512_core".
std::vector<std::string> cpu_isa_names();

// The process uses these at most, from now on, whatever ONEDNN_MAX_CPU_ISA says. Error when the name is none of the names,
// or oneDNN has chosen before: call it before anything is computed.
void limit_cpu_isa(const std::string& name);

// What the process uses: the most that its processor has and nothing forbids. "other" where no name fits.
std::string cpu_isa();

// The most that all of these have: "avx2" of {"avx2", "avx512_core"}. "" where they have none in common.
std::string common_cpu_isa(const std::vector<std::string>& names);

}  // namespace antichain
