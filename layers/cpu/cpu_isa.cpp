#include "layers/cpu/cpu_isa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>

#include "framework/error.h"

namespace antichain {
namespace {

struct Isa {
  const char* name;
  dnnl::cpu_isa value;  // a set of bits: a processor has the instructions when it has all of them
};
constexpr std::array<Isa, 8> known{{{"sse41", dnnl::cpu_isa::sse41},
                                    {"avx", dnnl::cpu_isa::avx},
                                    {"avx2", dnnl::cpu_isa::avx2},
                                    {"avx2_vnni", dnnl::cpu_isa::avx2_vnni},
                                    {"avx512_core", dnnl::cpu_isa::avx512_core},
                                    {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
                                    {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16},
                                    {"avx512_core_amx", dnnl::cpu_isa::avx512_core_amx}}};

const Isa* find(const std::string& name) {
  const auto it = std::ranges::find(known, name == "avx512" ? "avx512_core" : name, &Isa::name);
  return it == known.end() ? nullptr : &*it;
}

bool has(unsigned bits, const Isa& isa) { return (bits & unsigned(isa.value)) == unsigned(isa.value); }

// Returns the last name whose bits are all in `bits`.
std::string most_of(unsigned bits, const std::string& otherwise) {
  const auto it = std::find_if(known.rbegin(), known.rend(), [&](const Isa& isa) { return has(bits, isa); });
  return it == known.rend() ? otherwise : it->name;
}

}  // namespace

std::vector<std::string> cpu_isa_names() {
  std::vector<std::string> names;
  for (const Isa& isa : known) names.push_back(isa.name);
  return names;
}

void limit_cpu_isa(const std::string& name) {
  const Isa* isa = find(name);
  if (!isa)
    throw Error(fmt::format("oneDNN knows no instructions of the name '{}'", name),
                fmt::format("use one of {}", fmt::join(cpu_isa_names(), ", ")), ExitCode::usage);
  if (dnnl::set_max_cpu_isa(isa->value) != dnnl::status::success && cpu_isa() != isa->name)
    throw Error(fmt::format("oneDNN can't be limited to {} here: it uses {}", isa->name, cpu_isa()),
                "set ONEDNN_MAX_CPU_ISA in the environment instead", ExitCode::usage);
}

std::string cpu_isa() { return most_of(unsigned(dnnl::get_effective_cpu_isa()), "other"); }

std::string common_cpu_isa(const std::vector<std::string>& names) {
  unsigned bits = ~0U;
  for (const std::string& name : names) {
    const Isa* isa = find(name);
    bits &= isa ? unsigned(isa->value) : 0U;
  }
  return names.empty() ? "" : most_of(bits, "");
}

}  // namespace antichain
